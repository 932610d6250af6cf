// The requests of client-go's reflector, with its default settings, to servers whose lists break.
//
//	broken-lists -for 30m 5s 12s 55s
//
// For each duration it starts a server, which sends the headers and a part of a list or of a watch-list, a byte a second,
// and breaks the connection after the duration; and a reflector of Pods.  At the end it writes one line of JSON: for
// each duration the kind and time of each request, in seconds.  KUBE_FEATURE_WatchListClient=false requests lists only.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type request struct {
	Kind string  `json:"kind"`
	At   float64 `json:"at"`
}

// breaking is a server that breaks each response after a while.
type breaking struct {
	after    time.Duration
	began    time.Time
	mutex    sync.Mutex
	requests []request
}

func (b *breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, start := "list", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`
	if r.URL.Query().Get("watch") != "" {
		kind, start = "watch", `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",`
	}
	b.mutex.Lock()
	b.requests = append(b.requests, request{kind, time.Since(b.began).Seconds()})
	b.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	controller := http.NewResponseController(w)
	fmt.Fprint(w, start)
	for end := time.Now().Add(b.after); time.Now().Before(end); {
		controller.Flush()
		time.Sleep(min(time.Second, time.Until(end)))
		fmt.Fprint(w, " ")
	}
	panic(http.ErrAbortHandler) // closes the connection in the middle of the response
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	length := flag.Duration("for", 30*time.Minute, "how long to count")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *length)
	defer cancel()
	servers := map[string]*breaking{}
	for _, argument := range flag.Args() {
		after, err := time.ParseDuration(argument)
		must(err)
		server := &breaking{after: after, began: time.Now(), requests: []request{}}
		servers[argument] = server
		client, err := kubernetes.NewForConfig(&rest.Config{Host: httptest.NewServer(server).URL})
		must(err)
		pods := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", fields.Everything())
		reflector := cache.NewReflector(pods, &corev1.Pod{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
		go reflector.RunWithContext(ctx)
	}
	<-ctx.Done()
	counted := map[string][]request{}
	for argument, server := range servers {
		server.mutex.Lock()
		counted[argument] = append([]request{}, server.requests...)
		server.mutex.Unlock()
	}
	must(json.NewEncoder(os.Stdout).Encode(counted))
}
