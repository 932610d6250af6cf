package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	examplev1 "example.com/trioformer/website-operator/api/v1"
)

const (
	label       = "example.com/website"
	finalizer   = "example.com/website"
	version     = "example.com/secret-version"
	secretIndex = "spec.secret"
)

// WebsiteReconciler reconciles Websites with the objects that belong to them.
type WebsiteReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// SetupWithManager registers the index and the watches.
func (r *WebsiteReconciler) SetupWithManager(mgr ctrl.Manager) error {
	index := func(obj client.Object) []string {
		if name := obj.(*examplev1.Website).Spec.Secret; name != "" {
			return []string{name}
		}
		return nil
	}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &examplev1.Website{}, secretIndex, index)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&examplev1.Website{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.websitesOf)).
		Complete(r)
}

func (r *WebsiteReconciler) websitesOf(ctx context.Context, secret client.Object) []reconcile.Request {
	var websites examplev1.WebsiteList
	err := r.List(ctx, &websites, client.InNamespace(secret.GetNamespace()),
		client.MatchingFields{secretIndex: secret.GetName()})
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot list the Websites of a Secret")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(websites.Items))
	for _, website := range websites.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&website)})
	}
	return requests
}

// Reconcile reconciles one Website.
func (r *WebsiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var website examplev1.Website
	if err := r.Get(ctx, req.NamespacedName, &website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !website.DeletionTimestamp.IsZero() {
		return r.takeDown(ctx, &website)
	}
	if controllerutil.AddFinalizer(&website, finalizer) {
		if err := r.Update(ctx, &website); err != nil {
			return ctrl.Result{}, err
		}
	}

	secretVersion := ""
	if website.Spec.Secret != "" {
		var secret corev1.Secret
		key := types.NamespacedName{Namespace: website.Namespace, Name: website.Spec.Secret}
		if err := r.Get(ctx, key, &secret); apierrors.IsNotFound(err) {
			return ctrl.Result{}, r.report(ctx, &website, website.Status.Available, metav1.ConditionFalse,
				"SecretMissing", fmt.Sprintf("Secret %s does not exist", website.Spec.Secret))
		} else if err != nil {
			return ctrl.Result{}, err
		}
		secretVersion = secret.ResourceVersion
	}

	name := metav1.ObjectMeta{Name: website.Name, Namespace: website.Namespace}
	page := &corev1.ConfigMap{ObjectMeta: name}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"index.html": website.Spec.Page}
		return controllerutil.SetControllerReference(&website, page, r.Scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: name}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Spec.Selector = map[string]string{label: website.Name}
		if len(service.Spec.Ports) != 1 {
			service.Spec.Ports = []corev1.ServicePort{{}}
		}
		service.Spec.Ports[0].Port = 80 // not the whole list: the server has filled in other fields
		return controllerutil.SetControllerReference(&website, service, r.Scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: name}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		setDeployment(deployment, &website, secretVersion)
		return controllerutil.SetControllerReference(&website, deployment, r.Scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}

	available, wanted := deployment.Status.AvailableReplicas, *website.Spec.Replicas
	status, reason := metav1.ConditionTrue, "Available"
	if available < wanted || deployment.Status.ObservedGeneration != deployment.Generation {
		status, reason = metav1.ConditionFalse, "Progressing"
	}
	message := fmt.Sprintf("%d of %d pods are available", available, wanted)
	return ctrl.Result{}, r.report(ctx, &website, available, status, reason, message)
}

// setDeployment sets single fields: to replace a list or a struct would remove what the server has filled in,
// and every reconcile would write the Deployment.
func setDeployment(deployment *appsv1.Deployment, website *examplev1.Website, secretVersion string) {
	labels := map[string]string{label: website.Name}
	deployment.Spec.Replicas = website.Spec.Replicas
	if deployment.Spec.Selector == nil {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	}
	template := &deployment.Spec.Template
	template.Labels = labels
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[version] = secretVersion
	if len(template.Spec.Containers) != 1 {
		template.Spec.Containers = []corev1.Container{{Name: "web"}}
	}
	container := &template.Spec.Containers[0]
	container.Image = "nginx:1.27"
	container.VolumeMounts = []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}}
	container.EnvFrom = nil
	if website.Spec.Secret != "" {
		container.EnvFrom = []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: website.Spec.Secret}},
		}}
	}
	if len(template.Spec.Volumes) != 1 {
		template.Spec.Volumes = []corev1.Volume{{Name: "page"}}
	}
	source := &template.Spec.Volumes[0].VolumeSource
	if source.ConfigMap == nil {
		source.ConfigMap = &corev1.ConfigMapVolumeSource{}
	}
	source.ConfigMap.Name = website.Name
}

// takeDown deletes the Deployment, and removes the finalizer when its pods are gone.
func (r *WebsiteReconciler) takeDown(ctx context.Context, website *examplev1.Website) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(website, finalizer) {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: website.Name, Namespace: website.Namespace}}
	err := r.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err == nil {
		return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
	}
	if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	controllerutil.RemoveFinalizer(website, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, website))
}

// report writes the status, if it has changed.
func (r *WebsiteReconciler) report(
	ctx context.Context, website *examplev1.Website, available int32, status metav1.ConditionStatus, reason, message string,
) error {
	before := website.DeepCopy()
	website.Status.Available = available
	meta.SetStatusCondition(&website.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: website.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, website.Status) {
		return nil
	}
	return r.Status().Patch(ctx, website, client.MergeFrom(before))
}
