package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	team      = "example.com/team"
	protected = "example.com/protected"
)

// podWebhooks complete and check the annotations of pods.
type podWebhooks struct{}

func (podWebhooks) Default(_ context.Context, pod *corev1.Pod) error {
	if _, found := pod.Annotations[team]; !found {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, team, "none")
	}
	return nil
}

func (podWebhooks) ValidateCreate(_ context.Context, pod *corev1.Pod) (warnings admission.Warnings, err error) {
	for _, container := range pod.Spec.Containers {
		if !strings.Contains(container.Image, ":") {
			warnings = append(warnings, fmt.Sprintf("the image of %s has no tag", container.Name))
		}
	}
	if pod.Annotations[team] == "" {
		err = fmt.Errorf("the annotation %s is empty", team)
	}
	return warnings, err
}

func (podWebhooks) ValidateUpdate(_ context.Context, old, pod *corev1.Pod) (admission.Warnings, error) {
	if old.Annotations[team] == pod.Annotations[team] {
		return nil, nil
	}
	path := field.NewPath("metadata", "annotations").Key(team)
	problems := field.ErrorList{field.Forbidden(path, "a pod stays with its team")}
	return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, problems)
}

func (podWebhooks) ValidateDelete(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	if _, found := pod.Annotations[protected]; found {
		return nil, fmt.Errorf("%s is protected", pod.Name)
	}
	return admission.Warnings{pod.Name + " was not protected"}, nil
}

// Parcel is the hub of the conversion, and what is stored.
type Parcel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Width  int `json:"width"`
		Height int `json:"height"`
	} `json:"spec"`
}

func (p *Parcel) DeepCopyObject() runtime.Object {
	made := *p
	p.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

func (*Parcel) Hub() {}

// OldParcel has both numbers in one text, such as 3x4.
type OldParcel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size string `json:"size"`
	} `json:"spec"`
}

func (p *OldParcel) DeepCopyObject() runtime.Object {
	made := *p
	p.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

func (p *OldParcel) ConvertTo(hub conversion.Hub) error {
	made := hub.(*Parcel)
	made.ObjectMeta = p.ObjectMeta
	if _, err := fmt.Sscanf(p.Spec.Size, "%dx%d", &made.Spec.Width, &made.Spec.Height); err != nil {
		return fmt.Errorf("%q is not a size", p.Spec.Size)
	}
	return nil
}

func (p *OldParcel) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Parcel)
	p.ObjectMeta = from.ObjectMeta
	p.Spec.Size = fmt.Sprintf("%dx%d", from.Spec.Width, from.Spec.Height)
	return nil
}

// freePort finds a port for the server of webhooks, which takes no listener.
func freePort() int {
	listener := got(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// webhooks serves the webhooks until a signal, and writes a line {"url": …} when they can be called.
func webhooks(config *rest.Config, certificate, key string) {
	log.SetLogger(zap.New())
	known := runtime.NewScheme()
	must(scheme.AddToScheme(known))
	group := schema.GroupVersion{Group: "go.example.com", Version: "v2"}
	known.AddKnownTypes(group, &Parcel{})
	group.Version = "v1"
	known.AddKnownTypeWithName(group.WithKind("Parcel"), &OldParcel{})
	port := freePort()
	mgr := got(ctrl.NewManager(config, ctrl.Options{
		Scheme:  known,
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: "127.0.0.1", Port: port,
			CertDir: filepath.Dir(certificate), CertName: filepath.Base(certificate), KeyName: filepath.Base(key),
		}),
	}))
	must(ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(podWebhooks{}).WithValidator(podWebhooks{}).Complete())
	must(ctrl.NewWebhookManagedBy(mgr, &Parcel{}).Complete())
	go func() {
		eventually("the webhooks are served", func() bool { return mgr.GetWebhookServer().StartedChecker()(nil) == nil })
		write(map[string]string{"url": fmt.Sprintf("https://127.0.0.1:%d", port)})
	}()
	must(mgr.Start(ctrl.SetupSignalHandler()))
}
