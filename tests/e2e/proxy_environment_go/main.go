// Says which proxy Go uses for a URL in an environment: one JSON object per line in, one answer per line out.
//
// Each is decided twice: by golang.org/x/net/http/httpproxy, and by net/http in a process of its own, since net/http
// reads the environment once.  The two are the same code, but may be of different versions.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

type question struct {
	Environment map[string]string `json:"environment"`
	URL         string            `json:"url"`
	Both        bool              `json:"both"`
}

type answer struct {
	HTTPProxy string `json:"httpproxy"`
	NetHTTP   string `json:"nethttp"`
}

func text(proxy *url.URL, err error) string {
	switch {
	case err != nil:
		return "error"
	case proxy == nil:
		return "direct"
	}
	return proxy.String()
}

func ask(q question, self string) (answer, error) {
	os.Clearenv()
	list := []string{}
	for name, value := range q.Environment {
		os.Setenv(name, value)
		list = append(list, name+"="+value)
	}
	target, err := url.Parse(q.URL)
	if err != nil {
		return answer{}, err
	}
	said := answer{HTTPProxy: text(httpproxy.FromEnvironment().ProxyFunc()(target))}
	if !q.Both {
		return said, nil
	}
	command := exec.Command(self, q.URL)
	command.Env = list
	output, err := command.Output()
	said.NetHTTP = strings.TrimSpace(string(output))
	return said, err
}

func main() {
	if len(os.Args) > 1 {
		request, err := http.NewRequest("GET", os.Args[1], nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(text(http.ProxyFromEnvironment(request)))
		return
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		said, err := ask(q, self)
		if err != nil {
			panic(err)
		}
		encoded, err := json.Marshal(said)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(encoded))
	}
}
