// The rival client-go: a shared informer of pods with the namespace index, and handlers that count; or requests.
//
// By default it asks for protobuf, as controller-runtime does for built-in kinds; -json turns that off.
// Everything else is client-go's own default.  See ../drivers/measure.py for what a driver is.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const sent = "bench.example.com/sent"

type meter struct {
	wall time.Time
	cpu  float64
	rss  int64
}

func cpu() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

func rss() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		panic(err)
	}
	return pages * int64(os.Getpagesize())
}

func start() meter { return meter{rss: rss(), cpu: cpu(), wall: time.Now()} }

func (m meter) read() map[string]any {
	return map[string]any{"wall": time.Since(m.wall).Seconds(), "cpu": cpu() - m.cpu, "rss": rss() - m.rss}
}

func say(values map[string]any) {
	line, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// counter counts updates; it is called by one goroutine.
type counter struct {
	left int
	done chan struct{}
	read bool
	note func(*corev1.Pod)
}

var kept int64

func (c *counter) update(_, obj any) {
	pod := obj.(*corev1.Pod)
	if c.read && (pod.Labels["pod-template-hash"] == "" || pod.Spec.NodeName == "" || pod.Status.Phase == "") {
		return
	}
	if c.note != nil {
		c.note(pod)
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// trimmed is the transform that drops managedFields, as controllers do that mind their memory.
func trimmed(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}

const workers, requests = 16, 4

// crud creates, reads, patches and deletes config maps, with as many workers as ../drivers/crud.py has.
func crud(client kubernetes.Interface, count int) {
	api := client.CoreV1().ConfigMaps("default")
	ctx := context.Background()
	data := map[string]string{"config.yaml": strings.Repeat("setting: value\n", 70)}
	patch := []byte(`{"data":{"n":"1"}}`)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	run := func(names chan string) {
		var group sync.WaitGroup
		for range workers {
			group.Add(1)
			go func() {
				defer group.Done()
				for name := range names {
					made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
					_, err := api.Create(ctx, made, metav1.CreateOptions{})
					must(err)
					_, err = api.Get(ctx, name, metav1.GetOptions{})
					must(err)
					_, err = api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
					must(err)
					must(api.Delete(ctx, name, metav1.DeleteOptions{}))
				}
			}()
		}
		group.Wait()
	}
	named := func(kind string, count int) chan string {
		names := make(chan string, count)
		for i := range count {
			names <- fmt.Sprintf("crud-%d-%s-%d", os.Getpid(), kind, i)
		}
		close(names)
		return names
	}
	run(named("warm-up", workers))
	names := named("n", count)
	m := start()
	run(names)
	result := m.read()
	total := float64(requests * count)
	result["requests"] = total
	result["requests_per_cpu_s"] = total / result["cpu"].(float64)
	result["requests_per_s"] = total / result["wall"].(float64)
	say(result)
}

func main() {
	workload := os.Args[1]
	flags := flag.NewFlagSet("client_go", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	flags.Int("pods", 0, "")
	events := flags.Int("events", 0, "")
	handlers := flags.Int("handlers", 1, "")
	nodeIndex := flags.Bool("node-index", false, "")
	read := flags.Bool("read", false, "")
	drop := flags.Bool("drop-managed-fields", false, "")
	asJSON := flags.Bool("json", false, "")
	plainList := flags.Bool("plain-list", false, "")
	if err := flags.Parse(os.Args[2:]); err != nil {
		panic(err)
	}
	if *plainList { // read when client-go first asks for a feature
		if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
			panic(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		panic(err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if *asJSON {
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	}
	if workload == "crud" {
		config.QPS = -1
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err)
	}
	if workload == "crud" {
		crud(client, *events)
		return
	}
	options := []informers.SharedInformerOption{}
	if *drop {
		options = append(options, informers.WithTransform(trimmed))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	informer := factory.Core().V1().Pods().Informer() // has the namespace index
	if *nodeIndex {
		byNode := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
		if err := informer.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
			panic(err)
		}
	}
	type pair struct {
		pod *corev1.Pod
		at  int64
	}
	var seen []pair
	counters := make([]*counter, *handlers)
	registrations := make([]cache.InformerSynced, *handlers)
	for i := range counters {
		c := &counter{left: *events, done: make(chan struct{}), read: *read}
		if workload == "latency" {
			c.note = func(pod *corev1.Pod) { seen = append(seen, pair{pod, time.Now().UnixNano()}) }
		}
		counters[i] = c
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { atomic.AddInt64(&kept, 1) },
			UpdateFunc: c.update,
		})
		if err != nil {
			panic(err)
		}
		registrations[i] = registration.HasSynced
	}
	ctx := context.Background()
	m := start()
	go informer.Run(ctx.Done())
	wait := func(synced ...cache.InformerSynced) {
		for _, each := range synced { // WaitForCacheSync looks only every 100 ms; more often than this would cost CPU
			for !each() {
				time.Sleep(2 * time.Millisecond)
			}
		}
	}
	wait(informer.HasSynced)
	if workload == "start" { // of the whole process
		say(map[string]any{"cpu": cpu(), "rss": rss(), "objects": len(informer.GetStore().ListKeys())})
		return
	}
	result := m.read()
	result["objects"] = len(informer.GetStore().ListKeys())
	wait(registrations...)
	for name, value := range m.read() {
		result["handled_"+name] = value
	}
	if workload == "sync" {
		say(result)
		return
	}
	say(map[string]any{"ready": true})
	m = start()
	for _, c := range counters {
		<-c.done
	}
	result = m.read()
	result["events"] = *events
	if workload == "latency" {
		late := make([]float64, 0, len(seen))
		for _, each := range seen {
			at, err := strconv.ParseInt(each.pod.Annotations[sent], 10, 64)
			if err != nil {
				panic(err)
			}
			late = append(late, float64(each.at-at)/1e6)
		}
		sort.Float64s(late)
		result["p50"], result["p99"], result["max"] = late[len(late)/2], late[len(late)*99/100], late[len(late)-1]
	}
	say(result)
}
