package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// leader checks leader election: one candidate leads, and then the other one.
func leader(_ *rest.Config, clients kubernetes.Interface, ns string) {
	var led [2]atomic.Bool
	candidate := func(ctx context.Context, number int) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Name: "checks", Namespace: ns}, Client: clients.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprint("candidate-", number)},
			},
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { led[number].Store(true); <-ctx.Done() },
				OnStoppedLeading: func() { led[number].Store(false) },
			},
		})
	}
	check("leader election", func(ctx context.Context) {
		first, stopFirst := context.WithCancel(ctx)
		second, stopSecond := context.WithCancel(ctx)
		defer stopFirst()
		defer stopSecond()
		lease := func() *string {
			return got(clients.CoordinationV1().Leases(ns).Get(ctx, "checks", metav1.GetOptions{})).Spec.HolderIdentity
		}
		go candidate(first, 0)
		eventually("the first leads", led[0].Load)
		go candidate(second, 1)
		time.Sleep(600 * time.Millisecond) // it renews, and the other one waits
		assert(led[0].Load() && !led[1].Load() && *lease() == "candidate-0", "%v", *lease())
		stopFirst()
		eventually("the second leads", led[1].Load)
		assert(!led[0].Load() && *lease() == "candidate-1", "%v", *lease())
	})
}

const finalizer = "example.com/checks"

// reconciler makes a ConfigMap for each Deployment, which it deletes before the Deployment, and writes its status.
type reconciler struct {
	crclient.Client
	events events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := r.Get(ctx, request.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, crclient.IgnoreNotFound(err)
	}
	owned := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: deployment.Name + "-owned", Namespace: deployment.Namespace}}
	base := crclient.MergeFromWithOptions(deployment.DeepCopy(), crclient.MergeFromWithOptimisticLock{})
	if !deployment.DeletionTimestamp.IsZero() {
		if err := r.Delete(ctx, &owned); crclient.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(&deployment, finalizer)
		return ctrl.Result{}, crclient.IgnoreNotFound(r.Patch(ctx, &deployment, base))
	}
	if controllerutil.AddFinalizer(&deployment, finalizer) {
		return ctrl.Result{}, r.Patch(ctx, &deployment, base) // which is a change that it is called for
	}
	did, err := controllerutil.CreateOrUpdate(ctx, r.Client, &owned, func() error {
		owned.Data = map[string]string{"replicas": fmt.Sprint(*deployment.Spec.Replicas)}
		return controllerutil.SetControllerReference(&deployment, &owned, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if did != controllerutil.OperationResultNone {
		r.events.Eventf(&deployment, &owned, corev1.EventTypeNormal, "Written", "Write", "%s %s", did, owned.Name)
	}
	if deployment.Status.ObservedGeneration == deployment.Generation {
		return ctrl.Result{}, nil
	}
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Replicas = *deployment.Spec.Replicas
	if err := r.Status().Update(ctx, &deployment); err != nil {
		return ctrl.Result{}, err
	}
	base = crclient.StrategicMergeFrom(deployment.DeepCopy())
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	return ctrl.Result{}, r.Status().Patch(ctx, &deployment, base)
}

// manager checks a manager of controller-runtime with typed objects.
func manager(config *rest.Config, clients kubernetes.Interface, ns string) {
	log.SetLogger(zap.New())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	deployments, maps := clients.AppsV1().Deployments(ns), clients.CoreV1().ConfigMaps(ns)
	create, get := metav1.CreateOptions{}, metav1.GetOptions{}
	var cached crclient.Client
	owned := func(ctx context.Context) string {
		found, err := maps.Get(ctx, "web-owned", get)
		if apierrors.IsNotFound(err) {
			return ""
		}
		must(err)
		return found.Data["replicas"]
	}
	check("manager/start", func(limited context.Context) {
		mgr := got(ctrl.NewManager(config, ctrl.Options{
			Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
			Metrics:        server.Options{BindAddress: "0"},
			LeaderElection: true, LeaderElectionID: "checks", LeaderElectionNamespace: ns, LeaderElectionReleaseOnCancel: true,
		}))
		cached = mgr.GetClient()
		r := &reconciler{cached, mgr.GetEventRecorder("checks")}
		must(ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(r))
		go func() { ended <- mgr.Start(ctx) }()
		assert(mgr.GetCache().WaitForCacheSync(limited), "the cache has not synced")
	})
	check("manager/reconcile", func(ctx context.Context) {
		labels := map[string]string{"app": "web"}
		got(deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels, corev1.RestartPolicyAlways), Replicas: ptr(int32(2)),
		}}, create))
		eventually("the ConfigMap is made", func() bool { return owned(ctx) == "2" })
		eventually("the status is written", func() bool {
			status := got(deployments.Get(ctx, "web", get)).Status
			return status.Replicas == 2 && len(status.Conditions) == 1
		})
		owner := metav1.GetControllerOf(got(maps.Get(ctx, "web-owned", get)))
		assert(owner != nil && owner.Kind == "Deployment" && owner.Name == "web", "%v", owner)
		scale := got(deployments.GetScale(ctx, "web", get))
		scale.Spec.Replicas = 5
		got(deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}))
		eventually("the ConfigMap is changed", func() bool { return owned(ctx) == "5" })
		must(maps.Delete(ctx, "web-owned", metav1.DeleteOptions{}))
		eventually("the ConfigMap is made again", func() bool { return owned(ctx) == "5" })
	})
	check("manager/cache", func(ctx context.Context) {
		eventually("the cache has the status", func() bool {
			var found appsv1.DeploymentList
			must(cached.List(ctx, &found, crclient.InNamespace(ns)))
			return len(found.Items) == 1 && found.Items[0].Status.Replicas == 5
		})
	})
	check("manager/patch", func(ctx context.Context) {
		found := *got(deployments.Get(ctx, "web", get))
		base := found.DeepCopy()
		found.Labels = map[string]string{"a": "b"}
		must(cached.Patch(ctx, &found, crclient.MergeFromWithOptions(base, crclient.MergeFromWithOptimisticLock{})))
		found.Labels["c"] = "d"
		err := cached.Patch(ctx, &found, crclient.MergeFromWithOptions(base, crclient.MergeFromWithOptimisticLock{}))
		assert(apierrors.IsConflict(err), "%v", err)
		must(cached.Patch(ctx, found.DeepCopy(), crclient.StrategicMergeFrom(base)))
	})
	check("manager/apply", func(ctx context.Context) {
		given := applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "b"})
		must(cached.Apply(ctx, given, crclient.FieldOwner("checks"), crclient.ForceOwnership))
		made := got(maps.Get(ctx, "applied", get))
		assert(made.Data["a"] == "b" && made.ManagedFields[0].Manager == "checks", "%v", made)
	})
	check("manager/events", func(ctx context.Context) {
		eventually("the events are written", func() bool {
			var found *eventsv1.EventList = got(clients.EventsV1().Events(ns).List(ctx, metav1.ListOptions{}))
			for _, event := range found.Items {
				if event.Reason == "Written" && event.Regarding.Name == "web" && event.ReportingController == "checks" {
					return true
				}
			}
			return false
		})
	})
	check("manager/delete", func(ctx context.Context) {
		must(cached.Delete(ctx, got(deployments.Get(ctx, "web", get))))
		eventually("the Deployment and its ConfigMap are gone", func() bool {
			_, err := deployments.Get(ctx, "web", get)
			return apierrors.IsNotFound(err) && owned(ctx) == ""
		})
		must(cached.DeleteAllOf(ctx, &corev1.ConfigMap{}, crclient.InNamespace(ns)))
		eventually("no ConfigMap is left", func() bool { return len(got(maps.List(ctx, metav1.ListOptions{})).Items) == 0 })
	})
	check("manager/stop", func(ctx context.Context) {
		stop()
		select {
		case err := <-ended:
			must(err)
		case <-ctx.Done():
			must(ctx.Err())
		}
	})
	stop()
}
