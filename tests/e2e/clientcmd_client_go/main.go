// Says what client-go makes of kubeconfigs and of what replaces their values.
//
//	clientcmd-client-go <CASES
//
// Reads a JSON list of cases, and writes a JSON list of what each of them leads to, or of how many errors it has.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Case is one directory with kubeconfigs, and how they are used.
type Case struct {
	Directory string              `json:"directory"`
	Explicit  string              `json:"explicit"`
	Listed    []string            `json:"listed"`
	Context   string              `json:"context"`
	Overrides map[string]any      `json:"overrides"`
	Data      map[string][]byte   `json:"data"`
	Groups    []string            `json:"groups"`
	Extra     map[string][]string `json:"extra"`
}

// Result is what a case leads to.
type Result struct {
	Error              string              `json:"error"`
	Errors             int                 `json:"errors"`
	Server             string              `json:"server"`
	Namespace          string              `json:"namespace"`
	CAData             []byte              `json:"ca_data"`
	CAFile             string              `json:"ca_file"`
	Insecure           bool                `json:"insecure_skip_tls_verify"`
	TLSServerName      string              `json:"tls_server_name"`
	ProxyURL           string              `json:"proxy_url"`
	DisableCompression bool                `json:"disable_compression"`
	CertificateData    []byte              `json:"client_certificate_data"`
	CertificateFile    string              `json:"client_certificate_file"`
	KeyData            []byte              `json:"client_key_data"`
	KeyFile            string              `json:"client_key_file"`
	Token              string              `json:"token"`
	TokenFile          string              `json:"token_file"`
	Username           string              `json:"username"`
	Password           string              `json:"password"`
	Command            string              `json:"command"`
	As                 string              `json:"as"`
	AsUID              string              `json:"as_uid"`
	AsGroups           []string            `json:"as_groups"`
	AsExtra            map[string][]string `json:"as_extra"`
}

func main() {
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fail(err)
	}
	results := make([]Result, 0, len(cases))
	for _, each := range cases {
		if err := os.Chdir(each.Directory); err != nil {
			fail(err)
		}
		results = append(results, resultOf(each))
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

func resultOf(each Case) Result {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: each.Explicit, Precedence: each.Listed}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overridesOf(each))
	config, err := loader.ClientConfig()
	if err != nil {
		count := 1
		if all, ok := err.(utilerrors.Aggregate); ok {
			count = len(all.Errors())
		}
		return Result{Error: err.Error(), Errors: count}
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return Result{Error: err.Error(), Errors: 1}
	}
	result := Result{
		Server: config.Host, Namespace: namespace,
		CAData: config.CAData, CAFile: config.CAFile, Insecure: config.Insecure, TLSServerName: config.ServerName,
		ProxyURL: proxyOf(config), DisableCompression: config.DisableCompression,
		CertificateData: config.CertData, CertificateFile: config.CertFile, KeyData: config.KeyData, KeyFile: config.KeyFile,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		Username: config.Username, Password: config.Password,
		As: config.Impersonate.UserName, AsUID: config.Impersonate.UID,
		AsGroups: config.Impersonate.Groups, AsExtra: config.Impersonate.Extra,
	}
	if config.ExecProvider != nil {
		result.Command = config.ExecProvider.Command
	}
	return result
}

func proxyOf(config *rest.Config) string {
	if config.Proxy == nil {
		return ""
	}
	found, err := config.Proxy(&http.Request{})
	if err != nil || found == nil {
		return ""
	}
	return found.String()
}

func overridesOf(each Case) *clientcmd.ConfigOverrides {
	text := func(name string) string {
		value, _ := each.Overrides[name].(string)
		return value
	}
	flag := func(name string) bool {
		value, _ := each.Overrides[name].(bool)
		return value
	}
	return &clientcmd.ConfigOverrides{
		CurrentContext: each.Context,
		Context:        api.Context{Cluster: text("cluster"), AuthInfo: text("user"), Namespace: text("namespace")},
		ClusterInfo: api.Cluster{
			Server: text("server"), TLSServerName: text("tls_server_name"), ProxyURL: text("proxy_url"),
			CertificateAuthority: text("ca_file"), CertificateAuthorityData: each.Data["ca_data"],
			InsecureSkipTLSVerify: flag("insecure_skip_tls_verify"), DisableCompression: flag("disable_compression"),
		},
		AuthInfo: api.AuthInfo{
			ClientCertificate: text("client_certificate_file"), ClientCertificateData: each.Data["client_certificate_data"],
			ClientKey: text("client_key_file"), ClientKeyData: each.Data["client_key_data"],
			Token: text("token"), TokenFile: text("token_file"),
			Username: text("username"), Password: text("password"),
			Impersonate: text("as"), ImpersonateUID: text("as_uid"),
			ImpersonateGroups: each.Groups, ImpersonateUserExtra: each.Extra,
		},
	}
}
