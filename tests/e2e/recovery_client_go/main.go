// Informers of client-go with its default settings, for ../test_recovery.py and ../test_large_objects.py to compare with.
//
//	recovery-client-go [-pods] -kubeconfig FILE -namespace NAME URL...
//
// It runs one informer of ConfigMaps, or of Pods, for each URL, each with a client of its own, and writes {"synced": true} when all
// have synced.  For each line that it reads it then writes one line: the state of each informer.
// It ends when its standard input does.  ../recovery/subject_program.py does the same with trioformer.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// state is what an informer knows: resourceVersions by namespace/name, in its cache and by its notifications alone.
type state struct {
	Cache   map[string]string `json:"cache"`
	Replay  map[string]string `json:"replay"`
	Illegal []string          `json:"illegal"`
}

// replay makes a map from notifications, and notes those that contradict the earlier ones.
type replay struct {
	mutex   sync.Mutex
	objects map[string]string
	illegal []string
}

func describe(obj any) (key, resourceVersion string) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return gone.Key, ""
	}
	object := obj.(metav1.Object)
	return object.GetNamespace() + "/" + object.GetName(), object.GetResourceVersion()
}

func (r *replay) notify(what string, obj any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key, resourceVersion := describe(obj)
	if _, known := r.objects[key]; known == (what == "add") {
		r.illegal = append(r.illegal, what+" "+key+" "+resourceVersion)
	}
	if what == "delete" {
		delete(r.objects, key)
	} else {
		r.objects[key] = resourceVersion
	}
}

func (r *replay) state(store cache.Store) state {
	now := state{Cache: map[string]string{}, Replay: map[string]string{}, Illegal: []string{}}
	for _, obj := range store.List() {
		key, resourceVersion := describe(obj)
		now.Cache[key] = resourceVersion
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for key, resourceVersion := range r.objects {
		now.Replay[key] = resourceVersion
	}
	now.Illegal = append(now.Illegal, r.illegal...)
	return now
}

func start(kubeconfig, namespace, url string, pods bool) (cache.SharedIndexInformer, *replay, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.Host = url
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if pods {
		informer = factory.Core().V1().Pods().Informer()
	}
	known := &replay{objects: map[string]string{}}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { known.notify("add", obj) },
		UpdateFunc: func(_, obj any) { known.notify("update", obj) },
		DeleteFunc: func(obj any) { known.notify("delete", obj) },
	})
	factory.Start(make(chan struct{}))
	return informer, known, err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the file with the credentials")
	namespace := flag.String("namespace", "", "the namespace of the objects")
	pods := flag.Bool("pods", false, "whether the objects are Pods")
	flag.Parse()
	stores := []cache.Store{}
	replays := []*replay{}
	synced := []cache.InformerSynced{}
	for _, url := range flag.Args() {
		informer, known, err := start(*kubeconfig, *namespace, url, *pods)
		must(err)
		stores, replays, synced = append(stores, informer.GetStore()), append(replays, known), append(synced, informer.HasSynced)
	}
	cache.WaitForCacheSync(make(chan struct{}), synced...)
	answers := json.NewEncoder(os.Stdout)
	must(answers.Encode(map[string]bool{"synced": true}))
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		states := []state{}
		for n, store := range stores {
			states = append(states, replays[n].state(store))
		}
		must(answers.Encode(states))
	}
}
