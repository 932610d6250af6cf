// Checks of client-go and controller-runtime against the API server of a kubeconfig, for ../test_embedded_go.py.
//
//	embedded-go -kubeconfig FILE [-encoding default|protobuf|json] [-faults] GROUP...
//
// For each check it writes a line {"name": …, "ok": …, "error": …}.
// With -faults it also writes lines {"do": …}, and reads an empty line when that has been done to the server.
//
//	embedded-go -kubeconfig FILE -certificate FILE -key FILE webhooks
//
// This serves webhooks, for ../test_embedded_webhooks.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 10 * time.Second

var (
	writing sync.Mutex
	answers = bufio.NewScanner(os.Stdin)
	flags   = flag.NewFlagSet("embedded-go", flag.ExitOnError) // controller-runtime has flags of its own
	faults  = flags.Bool("faults", false, "ask for faults of the server")
)

type failure struct{ error }

// must ends the check that is running.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func assert(ok bool, format string, arguments ...any) {
	if !ok {
		must(fmt.Errorf(format, arguments...))
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}

func write(line any) {
	writing.Lock()
	defer writing.Unlock()
	must(json.NewEncoder(os.Stdout).Encode(line))
}

// check runs one check and writes its result.
func check(name string, run func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	defer func() {
		problem := ""
		if found := recover(); found != nil {
			problem = fmt.Sprint(found)
			if failed, ok := found.(failure); ok {
				problem = failed.Error()
			}
		}
		write(map[string]any{"name": name, "ok": problem == "", "error": problem})
	}()
	run(ctx)
}

// do asks for something to be done to the server; false if this cannot be asked for.
func do(what string) bool {
	if *faults {
		write(map[string]string{"do": what})
		assert(answers.Scan(), "nobody answers")
	}
	return *faults
}

func eventually(what string, is func() bool) {
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		assert(time.Now().Before(end), "still not so: %s", what)
	}
}

// counter counts the media types of responses.
type counter struct {
	sync.Mutex
	next  http.RoundTripper
	found map[string]int
}

func (t *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.Lock()
		mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
		t.found[mediaType]++
		t.Unlock()
	}
	return response, err
}

func main() {
	kubeconfig := flags.String("kubeconfig", "", "the kubeconfig")
	encoding := flags.String("encoding", "default", "what clients send and accept: default, protobuf or json")
	certificate := flags.String("certificate", "", "the certificate of the webhooks (PEM)")
	key := flags.String("key", "", "the certificate's key (PEM)")
	must(flags.Parse(os.Args[1:]))
	config := got(clientcmd.BuildConfigFromFlags("", *kubeconfig))
	if flags.Arg(0) == "webhooks" {
		webhooks(config, *certificate, *key)
		return
	}
	config.QPS = -1
	switch *encoding {
	case "protobuf":
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	case "json":
		config.ContentType = "application/json"
	}
	seen := counter{found: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return &seen
	})
	clients := kubernetes.NewForConfigOrDie(config)
	groups := map[string]func(*rest.Config, kubernetes.Interface, string){
		"kinds": kinds, "special": special, "informers": informers, "leader": leader, "manager": manager,
	}
	for _, name := range flags.Args() {
		namespace := got(clients.CoreV1().Namespaces().Create(
			context.Background(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}},
			metav1.CreateOptions{},
		)).Name
		groups[name](config, clients, namespace)
	}
	check("encoding", func(context.Context) {
		messages, texts := seen.found["application/vnd.kubernetes.protobuf"], seen.found["application/json"]
		if *encoding == "json" {
			assert(texts > 10*messages, "%v", seen.found) // the metadata client has an encoding of its own
		} else {
			assert(messages > 10*texts, "%v", seen.found)
		}
	})
}
