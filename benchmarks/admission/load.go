package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	patience  = 30 * time.Second // for the start of the server, and for a response
	warmUp    = time.Second
	uidLength = 36
	ticks     = 100 // of CPU time in a second, as Linux counts them for user space
)

//go:embed website.json
var website []byte

// uid is the unique identifier of a request with a number.
func uid(number int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", number) }

// request is what kube-apiserver sends to a webhook, with the headers of its client.
func request(path string, object []byte) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, object); err != nil {
		return nil, err
	}
	kind := metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	resource := metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "websites"}
	dryRun := false
	options := `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply"}`
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:             types.UID(uid(0)),
			Kind:            kind,
			Resource:        resource,
			RequestKind:     &kind,
			RequestResource: &resource,
			Name:            "shop",
			Namespace:       "default",
			Operation:       admissionv1.Create,
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:default:deployer",
				UID:      "9d1f6c1e-1111-4a4a-8c8c-27f0a9d3a001",
				Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"},
			},
			Object:  apiruntime.RawExtension{Raw: compact.Bytes()},
			DryRun:  &dryRun,
			Options: apiruntime.RawExtension{Raw: []byte(options)},
		},
	})
	head := "POST " + path + "?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-apiserver-admission\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\nAccept: application/json, */*\r\n" +
		"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
	return append([]byte(head), body...), err
}

// connection is one to the server, which is kept, with one request at a time.
type connection struct {
	stream *tls.Conn
	reader *bufio.Reader
	number int // of the last request
	step   int // to the next number, so that no two requests on any connection have the same
	body   bytes.Buffer
}

// call sends a request with a new uid, and returns the body of the response, which the next call overwrites.
func (c *connection) call(sent []byte) ([]byte, error) {
	c.number += c.step
	at := bytes.Index(sent, []byte(`"uid":"`)) + len(`"uid":"`)
	copy(sent[at:at+uidLength], uid(c.number))
	if _, err := c.stream.Write(sent); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	if _, err = io.Copy(&c.body, response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return c.body.Bytes(), nil
}

// expected is the response to a path, which differs only in its uid.
type expected struct{ before, after []byte }

func (e expected) check(body []byte, number int) error {
	middle := len(e.before) + uidLength
	if len(body) != middle+len(e.after) || !bytes.HasPrefix(body, e.before) ||
		!bytes.HasSuffix(body, e.after) || string(body[len(e.before):middle]) != uid(number) {
		return fmt.Errorf("unexpected response: %.300s", body)
	}
	return nil
}

// admit asks for one decision, and checks its meaning: whether it is allowed, and which default it adds.
func (c *connection) admit(path string, object []byte, allowed, patched bool) (expected, error) {
	sent, err := request(path, object)
	if err != nil {
		return expected{}, err
	}
	body, err := c.call(sent)
	if err != nil {
		return expected{}, fmt.Errorf("%s: %w", path, err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Response == nil {
		return expected{}, fmt.Errorf("%s: the response is not an AdmissionReview: %.300s", path, body)
	}
	added := patched && strings.Contains(string(review.Response.Patch), `"/spec/tier"`)
	if review.Response.Allowed != allowed || added != patched {
		return expected{}, fmt.Errorf("%s: wrong decision: %.300s", path, body)
	}
	before, after, _ := bytes.Cut(body, []byte(uid(c.number)))
	return expected{bytes.Clone(before), bytes.Clone(after)}, nil
}

// caller sends both requests in turns, as kube-apiserver does for each write.
type caller struct {
	connection
	requests  [2][]byte
	responses [2]expected
	turn      int
}

func (c *caller) next() error {
	c.turn = 1 - c.turn
	body, err := c.call(c.requests[c.turn])
	if err != nil {
		return err
	}
	return c.responses[c.turn].check(body, c.number)
}

// dial connects as soon as the server accepts connections.
func dial(port int, config *tls.Config) (*tls.Conn, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		stream, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), config)
		if err == nil || time.Now().After(deadline) {
			return stream, err
		}
	}
}

// connect makes the connections, and checks the decisions of the server on the first.
func connect(port int, authority string, connections int) ([]*caller, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}}
	callers := make([]*caller, connections)
	for i := range callers {
		stream, err := dial(port, config)
		if err != nil {
			return nil, err
		}
		callers[i] = &caller{connection: connection{stream: stream, reader: bufio.NewReader(stream), number: i, step: connections}}
	}
	first := callers[0]
	refused := bytes.Replace(website, []byte(`"replicas": 3`), []byte(`"replicas": 300`), 1)
	if _, err := first.admit(validatePath, refused, false, false); err != nil {
		return nil, err
	}
	for i, path := range []string{validatePath, mutatePath} {
		response, err := first.admit(path, website, true, path == mutatePath)
		if err != nil {
			return nil, err
		}
		for _, each := range callers {
			if each.requests[i], err = request(path, website); err != nil {
				return nil, err
			}
			each.responses[i] = response
		}
	}
	return callers, nil
}

// each runs a function for all connections at once, and returns the first error.
func each(callers []*caller, run func(*caller) error) error {
	errors := make(chan error, len(callers))
	for _, c := range callers {
		go func() { errors <- run(c) }()
	}
	var first error
	for range callers {
		if err := <-errors; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// flood sends requests on all connections, each as soon as the response to the last is there, and counts them.
func flood(callers []*caller, period time.Duration) (int, error) {
	counts := make(chan int, len(callers))
	deadline := time.Now().Add(period)
	err := each(callers, func(c *caller) error {
		done := 0
		defer func() { counts <- done }()
		for ; time.Now().Before(deadline); done++ {
			if err := c.next(); err != nil {
				return err
			}
		}
		return nil
	})
	total := 0
	for range callers {
		total += <-counts
	}
	return total, err
}

// arrive sends requests at a rate, at random times, and returns how long each took from the time it was due.
func arrive(callers []*caller, rate float64, period time.Duration) ([]time.Duration, error) {
	random := rand.New(rand.NewSource(1))
	due := make(chan time.Time, int(rate*period.Seconds())*2)
	go func() {
		defer close(due)
		runtime.LockOSThread() // which sleeps exactly; the timers of Go round to milliseconds
		start := time.Now()
		for after := time.Duration(0); after < period; after += time.Duration(random.ExpFloat64() / rate * 1e9) {
			if wait := time.Until(start.Add(after)); wait > 0 {
				span := syscall.NsecToTimespec(int64(wait))
				_ = syscall.Nanosleep(&span, nil)
			}
			due <- start.Add(after)
		}
	}()
	var lock sync.Mutex
	var took []time.Duration
	err := each(callers, func(c *caller) error {
		for began := range due {
			if err := c.next(); err != nil {
				return err
			}
			lock.Lock()
			took = append(took, time.Since(began))
			lock.Unlock()
		}
		return nil
	})
	return took, err
}

// cpuOf is how many seconds of CPU time a process has used.
func cpuOf(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / ticks, nil
}

// load measures the most requests that the server answers in a second, and the times of responses at half of that.
func load(port int, authority string, pid, connections int, period time.Duration) error {
	runtime.GOMAXPROCS(4) // on one core; a thread that sleeps exactly must not stop the others
	callers, err := connect(port, authority, connections)
	if err != nil {
		return err
	}
	if _, err := flood(callers, warmUp); err != nil {
		return err
	}
	began, before, err := now(pid)
	if err != nil {
		return err
	}
	count, err := flood(callers, period)
	if err != nil {
		return err
	}
	ended, after, err := now(pid)
	if err != nil {
		return err
	}
	wall := ended.Sub(began).Seconds()
	most := float64(count) / wall
	took, err := arrive(callers, most/2, period)
	if err != nil {
		return err
	}
	slices.Sort(took)
	percentile := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1e3 }
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"most": most,
		"cpu":  (after - before) / float64(count) * 1e6,
		"busy": (after - before) / wall,
		"p50":  percentile(0.5),
		"p99":  percentile(0.99),
	})
}

func now(pid int) (time.Time, float64, error) {
	used, err := cpuOf(pid)
	return time.Now(), used, err
}
