package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	shared "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// notes are what the handlers of an informer have been told, for each name.
type notes struct {
	sync.Mutex
	found map[string][]string
}

func (n *notes) add(kind string, obj any) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	one := obj.(metav1.Object)
	if kind == "update" && one.GetDeletionTimestamp() != nil {
		return // of a pod on kube-apiserver
	}
	n.Lock()
	defer n.Unlock()
	n.found[one.GetName()] = append(n.found[one.GetName()], kind+one.GetLabels()["number"])
}

func (n *notes) of(name string) string {
	n.Lock()
	defer n.Unlock()
	return fmt.Sprint(n.found[name])
}

func follow(informer cache.SharedIndexInformer) *notes {
	n := &notes{found: map[string][]string{}}
	got(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { n.add("add", obj) },
		UpdateFunc: func(_, obj any) { n.add("update", obj) },
		DeleteFunc: func(obj any) { n.add("delete", obj) },
	}))
	return n
}

// informers checks shared informers across faults.
func informers(_ *rest.Config, clients kubernetes.Interface, ns string) {
	ctx, stop := context.WithCancel(context.Background())
	factory := shared.NewSharedInformerFactoryWithOptions(clients, 0, shared.WithNamespace(ns))
	pods, deployments := clients.CoreV1().Pods(ns), clients.AppsV1().Deployments(ns)
	podInformer, deploymentInformer := factory.Core().V1().Pods(), factory.Apps().V1().Deployments()
	seen := map[string]*notes{"pods": follow(podInformer.Informer()), "deployments": follow(deploymentInformer.Informer())}
	create := func(ctx context.Context, name string) {
		meta, app := metav1.ObjectMeta{Name: name, Labels: map[string]string{"number": "0"}}, map[string]string{"app": name}
		got(pods.Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: template(nil, corev1.RestartPolicyNever).Spec}, metav1.CreateOptions{}))
		got(deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template(app, corev1.RestartPolicyAlways),
		}}, metav1.CreateOptions{}))
	}
	update := func(ctx context.Context, name string, number int) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"number":"%d"}}}`, number)
		got(pods.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
		got(deployments.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
	}
	remove := func(ctx context.Context, name string) {
		must(pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))}))
		must(deployments.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	expect := func(name, expected string) {
		for kind, found := range seen {
			for end := time.Now().Add(patience); found.of(name) != expected; time.Sleep(10 * time.Millisecond) {
				assert(time.Now().Before(end), "%s %s: expected %s, got %s", kind, name, expected, found.of(name))
			}
		}
	}
	defer factory.Shutdown()
	defer stop()
	check("informers/sync", func(limited context.Context) {
		create(limited, "first")
		factory.Start(ctx.Done())
		for kind, ok := range factory.WaitForCacheSync(limited.Done()) {
			assert(ok, "%v has not synced", kind)
		}
		expect("first", "[add0]")
	})
	check("informers/changes", func(ctx context.Context) {
		create(ctx, "second")
		expected := "[add0"
		for number := range 20 {
			update(ctx, "second", number+1)
			expected += fmt.Sprintf(" update%d", number+1)
		}
		remove(ctx, "second")
		expect("second", expected+" delete20]")
	})
	check("informers/reset", func(ctx context.Context) {
		create(ctx, "third")
		expect("third", "[add0]")
		if do("reset") {
			update(ctx, "third", 1)
			update(ctx, "third", 2)
			expect("third", "[add0 update1 update2]")
			assert(seen["pods"].of("first") == "[add0]", "listed again: %s", seen["pods"].of("first"))
		}
	})
	check("informers/compaction", func(ctx context.Context) {
		if do("compact") { // and label "first", delete "third" and create "fourth" before
			for name, pattern := range map[string]string{"first": "[add0 update7]", "fourth": "[add0]"} {
				expect(name, pattern)
			}
			expect("third", "[add0 update1 update2 delete2]")
		}
		update(ctx, "first", 8)
		for _, found := range seen {
			eventually("the last update", func() bool { return strings.HasSuffix(found.of("first"), "update8]") })
		}
		cached := got(podInformer.Lister().Pods(ns).Get("first"))
		read := got(pods.Get(ctx, "first", metav1.GetOptions{}))
		assert(equality.Semantic.DeepEqual(cached, read), "cached %v\ngot %v", cached, read)
		listed := got(deploymentInformer.Lister().List(labels.Everything()))
		assert(len(listed) == len(got(deployments.List(ctx, metav1.ListOptions{})).Items), "%v", listed)
	})
}
