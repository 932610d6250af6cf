package main

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	extensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func typeOf(obj runtime.Object) (string, string) {
	for _, known := range []*runtime.Scheme{scheme.Scheme, extensionsscheme.Scheme} {
		if found, _, err := known.ObjectKinds(obj); err == nil {
			version, kind := found[0].ToAPIVersionAndKind()
			return version, kind
		}
	}
	panic(failure{nil})
}

func template(labels map[string]string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			Containers: []corev1.Container{{
				Name: "main", Image: "nginx",
				Env:   []corev1.EnvVar{{Name: "A", Value: "ä"}, {Name: "B"}},
				Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1.5Gi"),
				}},
				ReadinessProbe: &corev1.Probe{TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")},
				}},
			}},
		},
	}
}

// kinds checks the verbs of many kinds.
func kinds(config *rest.Config, clients kubernetes.Interface, ns string) {
	core, labels := clients.CoreV1(), map[string]string{"app": "web"}
	meta := metav1.ObjectMeta{Name: ns + "-one", Annotations: map[string]string{"note": "ä\n"}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	never := template(labels, corev1.RestartPolicyNever)

	verbs("pods", core.Pods(ns), &corev1.Pod{ObjectMeta: meta, Spec: never.Spec}, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Image = "nginx:2"
	})
	verbs("configmaps", core.ConfigMaps(ns), &corev1.ConfigMap{
		ObjectMeta: meta, Data: map[string]string{"a": "b", "empty": ""}, BinaryData: map[string][]byte{"c": {0, 255, 10}},
	}, func(one *corev1.ConfigMap) { one.BinaryData["d"] = []byte{1, 2}; delete(one.Data, "a") })
	verbs("secrets", core.Secrets(ns), &corev1.Secret{
		ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": {0, 255}},
	}, func(one *corev1.Secret) { one.Data["b"] = []byte("c"); one.Immutable = ptr(false) })
	verbs("services", core.Services(ns), &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}, func(one *corev1.Service) { one.Spec.Ports[0].TargetPort = intstr.FromString("http") })
	verbs("serviceaccounts", core.ServiceAccounts(ns), &corev1.ServiceAccount{ObjectMeta: meta},
		func(one *corev1.ServiceAccount) { one.AutomountServiceAccountToken = ptr(false) })
	if *faults { // on kube-apiserver both have finalizers, which its controllers remove
		verbs("persistentvolumeclaims", core.PersistentVolumeClaims(ns), &corev1.PersistentVolumeClaim{
			ObjectMeta: meta,
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		}, func(one *corev1.PersistentVolumeClaim) { one.Annotations["a"] = "b" })
		verbs("namespaces", core.Namespaces(), &corev1.Namespace{ObjectMeta: meta},
			func(one *corev1.Namespace) { one.Annotations["a"] = "b" })
	}
	verbs("nodes", core.Nodes(), &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24"}},
		func(one *corev1.Node) {
			one.Spec.Taints = append(one.Spec.Taints, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule})
		})
	verbs("events", core.Events(ns), &corev1.Event{
		ObjectMeta: meta, Reason: "Tested", Type: corev1.EventTypeNormal, Message: "m", Count: 1,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: ns, UID: "u"},
		FirstTimestamp: metav1.NewTime(now.Truncate(time.Second)),
	}, func(one *corev1.Event) { one.Count = 2 })
	verbs("events.events.k8s.io", clients.EventsV1().Events(ns), &eventsv1.Event{
		ObjectMeta: meta, Reason: "Tested", Type: corev1.EventTypeNormal, Note: "m", Action: "Testing", EventTime: now,
		ReportingController: "example.com/checks", ReportingInstance: "checks-1",
		Regarding: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: ns, UID: "u"},
	}, func(one *eventsv1.Event) { one.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: now} })

	verbs("deployments", clients.AppsV1().Deployments(ns), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr(int32(0)), Selector: selector, Template: template(labels, corev1.RestartPolicyAlways),
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr(intstr.FromString("25%")), MaxUnavailable: ptr(intstr.FromInt32(0)),
		}, Type: appsv1.RollingUpdateDeploymentStrategyType},
	}}, func(one *appsv1.Deployment) { one.Spec.Replicas = ptr(int32(3)) })
	job := batchv1.JobSpec{Template: template(nil, corev1.RestartPolicyNever), Parallelism: ptr(int32(2))}
	verbs("jobs", clients.BatchV1().Jobs(ns), &batchv1.Job{ObjectMeta: meta, Spec: job},
		func(one *batchv1.Job) { one.Spec.Parallelism = ptr(int32(0)) })
	verbs("cronjobs", clients.BatchV1().CronJobs(ns), &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
		Schedule: "*/5 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job},
	}}, func(one *batchv1.CronJob) { one.Spec.Suspend = ptr(true) })
	verbs("roles", clients.RbacV1().Roles(ns), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	}}, func(one *rbacv1.Role) { one.Rules[0].Verbs = []string{"get", "list"} })
	verbs("rolebindings", clients.RbacV1().RoleBindings(ns), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "r"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "a", Namespace: ns}},
	}, func(one *rbacv1.RoleBinding) { one.Subjects[0].Name = "b" })
	verbs("leases", clients.CoordinationV1().Leases(ns), &coordinationv1.Lease{
		ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr("a"), RenewTime: &now},
	}, func(one *coordinationv1.Lease) {
		one.Spec.HolderIdentity = ptr("b")
		one.Spec.LeaseTransitions = ptr(int32(0))
	})
	verbs("horizontalpodautoscalers", clients.AutoscalingV2().HorizontalPodAutoscalers(ns),
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas:    3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"},
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr(int32(80)),
				}},
			}},
		}}, func(one *autoscalingv2.HorizontalPodAutoscaler) { one.Spec.MaxReplicas = 4 })
	verbs("poddisruptionbudgets", clients.PolicyV1().PodDisruptionBudgets(ns), &policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: ptr(intstr.FromString("50%"))},
	}, func(one *policyv1.PodDisruptionBudget) { one.Spec.MinAvailable = ptr(intstr.FromInt32(1)) })
	path := networkingv1.HTTPIngressPath{Path: "/", PathType: ptr(networkingv1.PathTypePrefix),
		Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80},
		}}}
	verbs("ingresses", clients.NetworkingV1().Ingresses(ns), &networkingv1.Ingress{
		ObjectMeta: meta, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: "a.example.com",
			IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}},
			},
		}}},
	}, func(one *networkingv1.Ingress) { one.Spec.IngressClassName = ptr("c") })
	verbs("networkpolicies", clients.NetworkingV1().NetworkPolicies(ns), &networkingv1.NetworkPolicy{
		ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
	}, func(one *networkingv1.NetworkPolicy) { one.Spec.PodSelector = metav1.LabelSelector{} })
	verbs("storageclasses", clients.StorageV1().StorageClasses(), &storagev1.StorageClass{
		ObjectMeta: meta, Provisioner: "example.com/p", Parameters: map[string]string{"a": "b"},
	}, func(one *storagev1.StorageClass) { one.AllowVolumeExpansion = ptr(true) })
	schema := &extensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr(true)}
	definition := &extensionsv1.CustomResourceDefinition{Spec: extensionsv1.CustomResourceDefinitionSpec{
		Group: ns + ".example.com", Scope: extensionsv1.NamespaceScoped,
		Versions: []extensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &extensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		}},
	}}
	rename(definition, "widgets."+definition.Spec.Group)
	verbs("customresourcedefinitions", extensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions(),
		definition, func(one *extensionsv1.CustomResourceDefinition) {
			schema := one.Spec.Versions[0].Schema.OpenAPIV3Schema
			schema.Properties = map[string]extensionsv1.JSONSchemaProps{"spec": {
				Type: "object", XPreserveUnknownFields: ptr(true),
				Default: &extensionsv1.JSON{Raw: []byte(`{"a":1}`)},
			}}
		})
}

// rename also renames the kind of a definition.
func rename(obj object, name string) {
	obj.SetName(name)
	if definition, ok := obj.(*extensionsv1.CustomResourceDefinition); ok {
		plural, _, _ := strings.Cut(name, ".")
		kind := strings.ToUpper(plural[:1]) + plural[1:]
		definition.Spec.Names = extensionsv1.CustomResourceDefinitionNames{
			Plural: plural, Singular: plural, Kind: kind, ListKind: kind + "List",
		}
	}
}
