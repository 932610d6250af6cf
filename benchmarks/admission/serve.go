package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Website is the custom resource, as its author declares it.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec `json:"spec"`
}

// WebsiteSpec is the desired state.
type WebsiteSpec struct {
	Host     string `json:"host,omitempty"`
	Page     string `json:"page,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	Tier     string `json:"tier,omitempty"`
}

// DeepCopyObject is what controller-gen would generate.
func (w *Website) DeepCopyObject() runtime.Object {
	made := *w
	w.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

type functions struct{}

func (functions) ValidateCreate(_ context.Context, website *Website) (admission.Warnings, error) {
	if website.Spec.Replicas > 100 || website.Spec.Host == "" {
		return nil, fmt.Errorf("a website needs a host and at most 100 replicas")
	}
	return nil, nil
}

func (f functions) ValidateUpdate(ctx context.Context, _, website *Website) (admission.Warnings, error) {
	return f.ValidateCreate(ctx, website)
}

func (functions) ValidateDelete(context.Context, *Website) (admission.Warnings, error) {
	return nil, nil
}

func (functions) Default(_ context.Context, website *Website) error {
	if website.Spec.Tier == "" {
		website.Spec.Tier = "standard"
	}
	return nil
}

// serve is the server of controller-runtime without a manager, and with its defaults.
func serve(port int, certificate, key string) error {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.com", Version: "v1"}, &Website{})
	server := webhook.NewServer(webhook.Options{
		Host:     "127.0.0.1",
		Port:     port,
		CertDir:  filepath.Dir(certificate),
		CertName: filepath.Base(certificate),
		KeyName:  filepath.Base(key),
	})
	server.Register(validatePath, admission.WithValidator[*Website](scheme, functions{}))
	server.Register(mutatePath, admission.WithDefaulter[*Website](scheme, functions{}))
	return server.Start(context.Background())
}
