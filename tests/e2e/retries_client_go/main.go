// Requests of client-go with its default settings, for ../test_retries.py to compare with.
//
// For each line that it reads, {"id": …, "url": …, "verb": …, "path": …, "content_type": …, "body": …, "seconds": …}, it
// sends one request with a rest client of its own, all at the same time, and then writes {"id": …, "code": …,
// "error": …}.  The code is that of the HTTP status, 0 without a response; a request has so many seconds.
// It ends when its standard input has ended and all requests have.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

type order struct {
	ID          int    `json:"id"`
	URL         string `json:"url"`
	Verb        string `json:"verb"`
	Path        string `json:"path"`
	ContentType string `json:"content_type"`
	Body        string `json:"body"`
	Seconds     int    `json:"seconds"`
}

type result struct {
	ID    int    `json:"id"`
	Code  int    `json:"code"`
	Error string `json:"error"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func send(given order) result {
	config := &rest.Config{Host: given.URL}
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.APIPath = "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(given.Seconds)*time.Second)
	defer cancel()
	request := client.Verb(given.Verb).AbsPath(given.Path)
	if given.Body != "" {
		request = request.SetHeader("Content-Type", given.ContentType).Body([]byte(given.Body))
	}
	found := result{ID: given.ID}
	done := request.Do(ctx).StatusCode(&found.Code)
	if err := done.Error(); err != nil {
		found.Error = err.Error()
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			found.Code = int(status.Status().Code)
		}
	}
	return found
}

func main() {
	answers := json.NewEncoder(os.Stdout)
	var mutex sync.Mutex
	var requests sync.WaitGroup
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		given := order{}
		must(json.Unmarshal(lines.Bytes(), &given))
		requests.Go(func() {
			found := send(given)
			mutex.Lock()
			defer mutex.Unlock()
			must(answers.Encode(found))
		})
	}
	requests.Wait()
}
