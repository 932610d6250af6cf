package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applyscale "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// special checks subresources, server-side apply, statuses and errors.
func special(config *rest.Config, clients kubernetes.Interface, ns string) {
	create, update, get := metav1.CreateOptions{}, metav1.UpdateOptions{}, metav1.GetOptions{}
	pods, deployments, labels := clients.CoreV1().Pods(ns), clients.AppsV1().Deployments(ns), map[string]string{"app": "web"}
	pod := func(ctx context.Context, name string) *corev1.Pod {
		return got(pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: template(nil, corev1.RestartPolicyNever).Spec,
		}, create))
	}

	check("scale", func(ctx context.Context) {
		made := got(deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels, corev1.RestartPolicyAlways), Replicas: ptr(int32(2)),
		}}, create))
		scale := got(deployments.GetScale(ctx, "web", get))
		assert(scale.Spec.Replicas == 2 && scale.Status.Selector == "app=web" && scale.UID == made.UID, "%v", scale)
		scale.Spec.Replicas = 0
		scale = got(deployments.UpdateScale(ctx, "web", scale, update))
		assert(scale.Spec.Replicas == 0 && scale.ResourceVersion != made.ResourceVersion, "%v", scale)
		_, err := deployments.UpdateScale(ctx, "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns, ResourceVersion: made.ResourceVersion},
		}, update)
		assert(apierrors.IsConflict(err), "%v", err)
		scale.Spec.Replicas = -1
		_, err = deployments.UpdateScale(ctx, "web", scale, update)
		assert(apierrors.IsInvalid(err), "%v", err)
		scale = got(deployments.ApplyScale(ctx, "web", applyscale.Scale().WithName("web").WithNamespace(ns).
			WithSpec(applyscale.ScaleSpec().WithReplicas(4)), metav1.ApplyOptions{FieldManager: "checks", Force: true}))
		assert(scale.Spec.Replicas == 4 && *got(deployments.Get(ctx, "web", get)).Spec.Replicas == 4, "%v", scale)
	})
	check("status of a deployment", func(ctx context.Context) {
		old := got(deployments.Get(ctx, "web", get))
		old.Status = appsv1.DeploymentStatus{
			ObservedGeneration: old.Generation, Replicas: 4, UpdatedReplicas: 4, ReadyReplicas: 4, AvailableReplicas: 4,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		old.Spec.Replicas = ptr(int32(9))
		done := got(deployments.UpdateStatus(ctx, old, update))
		assert(done.Status.ReadyReplicas == 4 && *done.Spec.Replicas == 4 && done.Generation == old.Generation, "%v", done)
		done = got(deployments.Patch(ctx, "web", types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Progressing","status":"True"}]}}`), metav1.PatchOptions{}, "status"))
		assert(len(done.Status.Conditions) == 2, "%v", done.Status)
	})
	check("apply", func(ctx context.Context) {
		options := metav1.ApplyOptions{FieldManager: "checks"}
		given := applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "b"}).WithBinaryData(map[string][]byte{"c": {0, 255}})
		made := got(clients.CoreV1().ConfigMaps(ns).Apply(ctx, given, options))
		assert(made.Data["a"] == "b" && len(made.BinaryData["c"]) == 2, "%v", made)
		assert(made.ManagedFields[0].Manager == "checks" && made.ManagedFields[0].FieldsV1 != nil, "%v", made.ManagedFields)
		extracted := got(applycore.ExtractConfigMap(made, "checks"))
		assert(extracted.Data["a"] == "b", "%v", extracted)
		_, err := clients.CoreV1().ConfigMaps(ns).Apply(ctx, applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "c"}),
			metav1.ApplyOptions{FieldManager: "other"})
		assert(apierrors.IsConflict(err), "%v", err)
		assert(apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), "%v", err)
		image := applyapps.DeploymentSpec().WithTemplate(applycore.PodTemplateSpec().WithSpec(applycore.PodSpec().
			WithContainers(applycore.Container().WithName("main").WithImage("nginx:3"))))
		done := got(deployments.Apply(ctx, applyapps.Deployment("web", ns).WithSpec(image), metav1.ApplyOptions{FieldManager: "checks", Force: true}))
		assert(len(done.Spec.Template.Spec.Containers) == 1 && done.Spec.Template.Spec.Containers[0].Image == "nginx:3", "%v", done)
	})
	check("token", func(ctx context.Context) {
		accounts := clients.CoreV1().ServiceAccounts(ns)
		got(accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, create))
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr(int64(3600))}}
		made := got(accounts.CreateToken(ctx, "robot", request, create))
		assert(made.Status.Token != "" && !made.Status.ExpirationTimestamp.IsZero(), "%v", made)
		_, err := accounts.CreateToken(ctx, "nobody", request, create)
		assert(apierrors.IsNotFound(err), "%v", err)
	})
	check("reviews", func(ctx context.Context) {
		access, masters := clients.AuthorizationV1(), []string{"system:masters"}
		asked := &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: "pods"}
		mine := got(access.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked},
		}, create))
		assert(mine.Status.Allowed && mine.Spec.ResourceAttributes.Verb == "list", "%v", mine)
		spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: asked, User: "somebody", Groups: masters}
		theirs := got(access.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, create))
		assert(theirs.Status.Allowed && theirs.Spec.User == "somebody", "%v", theirs)
		local := got(access.LocalSubjectAccessReviews(ns).Create(ctx, &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Spec: spec,
		}, create))
		assert(local.Status.Allowed && local.Namespace == ns, "%v", local)
		rules := got(access.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns},
		}, create))
		assert(len(rules.Status.ResourceRules) > 0 && len(rules.Status.NonResourceRules) > 0, "%v", rules)
		_, err := access.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{}, create)
		assert(apierrors.IsInvalid(err), "%v", err)
		self := got(clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, create))
		assert(slices.Contains(self.Status.UserInfo.Groups, "system:masters"), "%v", self)
		granted := got(clients.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, create))
		token := got(clients.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: granted.Status.Token},
		}, create))
		assert(token.Status.Authenticated && token.Status.User.Username == "system:serviceaccount:"+ns+":robot", "%v", token)
	})
	check("binding", func(ctx context.Context) {
		made := pod(ctx, "bound")
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "bound", Namespace: ns, UID: made.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		}
		must(pods.Bind(ctx, binding, create))
		made = got(pods.Get(ctx, "bound", get))
		assert(made.Spec.NodeName == "node-1" && len(made.Status.Conditions) == 1, "%v", made)
		assert(apierrors.IsConflict(pods.Bind(ctx, binding, create)), "bound twice")
	})
	check("status of a pod", func(ctx context.Context) {
		made := got(pods.Get(ctx, "bound", get))
		made.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, StartTime: ptr(metav1.Now()),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		}
		made = got(pods.UpdateStatus(ctx, made, update))
		assert(made.Status.Phase == corev1.PodRunning && made.Status.ContainerStatuses[0].State.Running != nil, "%v", made.Status)
	})
	check("eviction", func(ctx context.Context) {
		budgets := clients.PolicyV1().PodDisruptionBudgets(ns)
		budget := got(budgets.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}, create))
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: "bound", Namespace: ns},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))},
		}
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DesiredHealthy: 1, CurrentHealthy: 1, ExpectedPods: 1}
		budget = got(budgets.UpdateStatus(ctx, budget, update))
		err := pods.EvictV1(ctx, eviction)
		assert(apierrors.IsTooManyRequests(err), "%v", err)
		budget.Status.DisruptionsAllowed = 1
		got(budgets.UpdateStatus(ctx, budget, update))
		must(pods.EvictV1(ctx, eviction))
		_, err = pods.Get(ctx, "bound", get)
		assert(apierrors.IsNotFound(err), "%v", err)
		err = pods.EvictV1(ctx, eviction)
		assert(apierrors.IsNotFound(err), "%v", err)
	})
	check("errors", func(ctx context.Context) {
		maps := clients.CoreV1().ConfigMaps(ns)
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}}, create)
		assert(apierrors.IsInvalid(err), "%v", err)
		assert(err.(apierrors.APIStatus).Status().Details.Causes[0].Field == "metadata.name", "%v", err)
		_, err = clients.CoreV1().ConfigMaps("nowhere").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, create)
		assert(apierrors.IsNotFound(err), "%v", err)
		_, err = maps.List(ctx, metav1.ListOptions{LabelSelector: "a in"})
		assert(apierrors.IsBadRequest(err), "%v", err)
		_, err = maps.Watch(ctx, metav1.ListOptions{ResourceVersion: "nonsense"})
		assert(err != nil, "watched nonsense")
		_, err = maps.Patch(ctx, "applied", types.JSONPatchType, []byte(`[{"op":"remove","path":"/nope"}]`), metav1.PatchOptions{})
		assert(apierrors.IsInvalid(err), "%v", err)
		_, err = maps.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "nope"}}, update)
		assert(apierrors.IsNotFound(err), "%v", err)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "new", ResourceVersion: "1"}, Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Port: 80}},
		}}
		got(clients.CoreV1().Services(ns).Update(ctx, service, update)) // which creates it
		_, err = maps.Create(ctx, &corev1.ConfigMap{}, create)
		assert(apierrors.IsInvalid(err), "%v", err)
		generated := got(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}, create))
		assert(len(generated.Name) == len("some-")+5, "%v", generated.Name)
	})
	check("expired", func(ctx context.Context) {
		maps := clients.CoreV1().ConfigMaps(ns)
		page := got(maps.List(ctx, metav1.ListOptions{Limit: 1}))
		if do("forget") {
			_, err := maps.List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue})
			assert(apierrors.IsResourceExpired(err), "%v", err)
			watching := got(maps.Watch(ctx, metav1.ListOptions{ResourceVersion: page.ResourceVersion}))
			defer watching.Stop()
			event := <-watching.ResultChan()
			assert(event.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "%v", event)
		}
	})
	check("large objects", func(ctx context.Context) {
		maps := clients.CoreV1().ConfigMaps(ns)
		for number := range 3 {
			got(maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("large-", number), Labels: map[string]string{"is": "large"}},
				BinaryData: map[string][]byte{"a": bytes.Repeat([]byte{byte(number), 255}, 150_000)},
			}, create))
		}
		found := got(maps.List(ctx, metav1.ListOptions{LabelSelector: "is=large"})).Items
		assert(len(found) == 3 && len(found[2].BinaryData["a"]) == 300_000 && found[2].BinaryData["a"][2] == 2, "not as written")
	})
	check("event recorder", func(ctx context.Context) {
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: clients.CoreV1().Events(ns)})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "checks"})
		about := pod(ctx, "recorded")
		for range 3 {
			recorder.Event(about, corev1.EventTypeWarning, "Tested", "again and again")
		}
		eventually("one event is counted", func() bool {
			found := got(clients.CoreV1().Events(ns).Search(scheme.Scheme, about)).Items
			return len(found) == 1 && found[0].Count == 3
		})
	})
	check("finalizers", func(ctx context.Context) {
		maps := clients.CoreV1().ConfigMaps(ns)
		made := got(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.com/a"}}}, create))
		must(maps.Delete(ctx, "kept", metav1.DeleteOptions{}))
		made = got(maps.Get(ctx, "kept", get))
		assert(made.DeletionTimestamp != nil && made.DeletionGracePeriodSeconds != nil, "%v", made)
		made.Finalizers = nil
		got(maps.Update(ctx, made, update))
		_, err := maps.Get(ctx, "kept", get)
		assert(apierrors.IsNotFound(err), "%v", err)
	})
	check("metadata client", func(ctx context.Context) {
		api := metadata.NewForConfigOrDie(config).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ns)
		found := got(api.Get(ctx, "applied", get))
		assert(found.Name == "applied" && len(found.ManagedFields) == 1, "%v", found)
		list := got(api.List(ctx, metav1.ListOptions{}))
		assert(len(list.Items) > 1, "%v", list)
		watching := got(api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))
		defer watching.Stop()
		got(api.Patch(ctx, "applied", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
		changed := next(ctx, watching).Object.(*metav1.PartialObjectMetadata)
		assert(changed.Labels["a"] == "b", "%v", changed)
		must(api.Delete(ctx, "applied", metav1.DeleteOptions{}))
	})
	check("discovery", func(ctx context.Context) {
		found := got(clients.Discovery().ServerPreferredResources())
		assert(len(found) > 10, "%v", found)
		assert(got(clients.Discovery().ServerVersion()).Minor == "36", "another version")
	})
}
