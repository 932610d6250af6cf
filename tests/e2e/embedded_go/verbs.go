package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

type object interface {
	metav1.Object
	runtime.Object
}

// client is a typed client of a kind.
type client[T object, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

var labelled = metav1.ListOptions{LabelSelector: "of=checks"}

func ptr[T any](value T) *T { return &value }

// next returns the next event of a watch, which must not be an error.
func next(ctx context.Context, watching watch.Interface) watch.Event {
	select {
	case event, ok := <-watching.ResultChan():
		assert(ok, "the watch has ended")
		assert(event.Type != watch.Error, "watch: %v", apierrors.FromObject(event.Object))
		return event
	case <-ctx.Done():
		panic(failure{fmt.Errorf("no event: %w", ctx.Err())})
	}
}

func names(list runtime.Object) []string {
	found := []string{}
	must(meta.EachListItem(list, func(item runtime.Object) error {
		found = append(found, item.(metav1.Object).GetName())
		return nil
	}))
	return found
}

// includes checks that what has been sent is in what has come back, which has metadata and defaults of the server too.
func includes(back, sent object) {
	bare := func(obj object) runtime.Object {
		copied := obj.DeepCopyObject().(object)
		copied.SetCreationTimestamp(metav1.Time{})
		copied.SetGeneration(0)
		copied.SetManagedFields(nil)
		copied.SetResourceVersion("")
		return copied
	}
	assert(equality.Semantic.DeepDerivative(bare(sent), bare(back)), "sent %v\ngot %v", sent, back)
}

// verbs checks each verb of a kind with objects that differ only in their names.
func verbs[T object, L runtime.Object](kind string, api client[T, L], sample T, change func(T)) {
	name := sample.GetName()
	sample.SetLabels(map[string]string{"of": "checks"})
	fresh := func(name string) T {
		made := sample.DeepCopyObject().(T)
		rename(made, name)
		return made
	}
	suffixed := func(suffix string) string {
		if strings.Contains(name, ".") { // a definition, whose name ends with its group
			return "x" + suffix + name
		}
		return name + "-" + suffix
	}
	create := func(ctx context.Context, name string) T {
		return got(api.Create(ctx, fresh(name), metav1.CreateOptions{}))
	}
	get := func(ctx context.Context) T { return got(api.Get(ctx, name, metav1.GetOptions{})) }
	check(kind+"/create", func(ctx context.Context) {
		made := create(ctx, name)
		assert(made.GetUID() != "" && made.GetResourceVersion() != "", "no uid")
		includes(made, sample)
		read := get(ctx)
		written := kind == "customresourcedefinitions" && !*faults // the status, immediately
		assert(equality.Semantic.DeepEqual(made, read) || written, "created %v\ngot %v", made, read)
		_, err := api.Create(ctx, fresh(name), metav1.CreateOptions{})
		assert(apierrors.IsAlreadyExists(err), "%v", err)
		dry := got(api.Create(ctx, fresh(suffixed("dry")), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		_, err = api.Get(ctx, dry.GetName(), metav1.GetOptions{})
		assert(apierrors.IsNotFound(err), "%v", err)
	})
	check(kind+"/update", func(ctx context.Context) {
		old := get(ctx)
		changed := old.DeepCopyObject().(T)
		change(changed)
		done := got(api.Update(ctx, changed, metav1.UpdateOptions{}))
		assert(done.GetResourceVersion() != old.GetResourceVersion(), "nothing has changed")
		includes(done, changed)
		_, err := api.Update(ctx, old, metav1.UpdateOptions{})
		assert(apierrors.IsConflict(err), "%v", err)
	})
	status, ok := any(api).(interface {
		UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	})
	if ok && reflect.ValueOf(sample).Elem().FieldByName("Status").IsValid() {
		check(kind+"/status", func(ctx context.Context) {
			old := get(ctx)
			done := got(status.UpdateStatus(ctx, old, metav1.UpdateOptions{}))
			assert(done.GetUID() == old.GetUID() && done.GetGeneration() == old.GetGeneration(), "%v", done)
			got(api.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{}}`), metav1.PatchOptions{}, "status"))
		})
	}
	check(kind+"/patch", func(ctx context.Context) {
		apiVersion, typeName := typeOf(sample)
		applied := got(json.Marshal(map[string]any{
			"apiVersion": apiVersion, "kind": typeName,
			"metadata": map[string]any{"name": name, "annotations": map[string]string{"apply": "a"}},
		}))
		for patch, text := range map[types.PatchType]string{
			types.MergePatchType:          `{"metadata":{"annotations":{"merge":"a"}}}`,
			types.StrategicMergePatchType: `{"metadata":{"annotations":{"strategic-merge":"a"}}}`,
			types.JSONPatchType:           `[{"op":"add","path":"/metadata/labels/json","value":"a"}]`,
			types.ApplyPatchType:          string(applied),
		} {
			options := metav1.PatchOptions{FieldManager: "checks"}
			if patch == types.ApplyPatchType {
				options.Force = ptr(true)
			}
			done, err := api.Patch(ctx, name, patch, []byte(text), options)
			assert(err == nil, "%s: %v", patch, err)
			assert(len(done.GetAnnotations())+len(done.GetLabels()) > 1, "%s: %v", patch, done)
		}
		now := get(ctx)
		for _, key := range []string{"merge", "strategic-merge", "apply"} {
			assert(now.GetAnnotations()[key] == "a", "%s: %v", key, now.GetAnnotations())
		}
		assert(now.GetLabels()["json"] == "a", "%v", now.GetLabels())
		_, err := api.Patch(ctx, suffixed("nope"), types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		assert(apierrors.IsNotFound(err), "%v", err)
		_, err = api.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"}}`), metav1.PatchOptions{})
		assert(apierrors.IsConflict(err), "%v", err)
	})
	check(kind+"/list", func(ctx context.Context) {
		for number := range 4 {
			create(ctx, suffixed(fmt.Sprint(number)))
		}
		whole := got(api.List(ctx, labelled))
		assert(len(names(whole)) == 5, "%v", names(whole))
		one := got(api.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
		assert(len(names(one)) == 1, "%v", names(one))
		none := got(api.List(ctx, metav1.ListOptions{LabelSelector: "of in (nothing)"}))
		assert(len(names(none)) == 0, "%v", names(none))
		must(meta.EachListItem(one, func(item runtime.Object) error {
			read := get(ctx)
			assert(equality.Semantic.DeepEqual(item, runtime.Object(read)), "listed %v\ngot %v", item, read)
			return nil
		}))
		pages, options := []string{}, metav1.ListOptions{LabelSelector: labelled.LabelSelector, Limit: 2}
		for {
			page := got(api.List(ctx, options))
			pages = append(pages, names(page)...)
			about := got(meta.ListAccessor(page))
			assert(about.GetResourceVersion() != "", "no resourceVersion")
			if options.Continue = about.GetContinue(); options.Continue == "" {
				break
			}
			assert(len(names(page)) == 2, "%v", names(page))
		}
		assert(fmt.Sprint(pages) == fmt.Sprint(names(whole)), "%v %v", pages, names(whole))
		_, err := api.List(ctx, metav1.ListOptions{LabelSelector: "of=checks", Continue: "nonsense"})
		assert(apierrors.IsBadRequest(err), "%v", err)
	})
	check(kind+"/watch", func(ctx context.Context) {
		about := got(meta.ListAccessor(got(api.List(ctx, labelled))))
		watching := got(api.Watch(ctx, metav1.ListOptions{
			LabelSelector: labelled.LabelSelector, ResourceVersion: about.GetResourceVersion(),
		}))
		defer watching.Stop()
		made := create(ctx, suffixed("watched"))
		first := next(ctx, watching)
		assert(first.Type == watch.Added, "%v", first)
		assert(equality.Semantic.DeepEqual(first.Object, runtime.Object(made)), "watched %v\ncreated %v", first.Object, made)
		got(api.Patch(ctx, made.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
		event := next(ctx, watching)
		for event.Type == watch.Modified && len(event.Object.(T).GetLabels()) == 1 {
			event = next(ctx, watching) // the server has written the status of a definition
		}
		assert(event.Type == watch.Modified && event.Object.(T).GetLabels()["a"] == "b", "%v", event)
		must(api.Delete(ctx, made.GetName(), metav1.DeleteOptions{
			GracePeriodSeconds: ptr(int64(0)), PropagationPolicy: ptr(metav1.DeletePropagationBackground),
		}))
		for event.Type == watch.Modified {
			event = next(ctx, watching)
		}
		assert(event.Type == watch.Deleted && event.Object.(T).GetUID() == made.GetUID(), "%v", event)
	})
	check(kind+"/watch-list", func(ctx context.Context) {
		watching := got(api.Watch(ctx, metav1.ListOptions{
			LabelSelector: labelled.LabelSelector, SendInitialEvents: ptr(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}))
		defer watching.Stop()
		for range 5 {
			event := next(ctx, watching)
			assert(event.Type == watch.Added, "%v", event)
		}
		event := next(ctx, watching)
		assert(event.Type == watch.Bookmark, "%v", event)
		mark := event.Object.(T)
		assert(mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", "%v", mark)
		assert(mark.GetResourceVersion() != "", "no resourceVersion")
	})
	check(kind+"/delete", func(ctx context.Context) {
		uid, now := get(ctx).GetUID(), ptr(int64(0))
		err := api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("nope")})
		assert(apierrors.IsConflict(err), "%v", err)
		err = api.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletionPropagation("Nope"))})
		assert(apierrors.IsInvalid(err), "%v", err)
		must(api.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, GracePeriodSeconds: now}))
		must(api.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: now,
			PropagationPolicy: ptr(metav1.DeletePropagationBackground),
		}))
		eventually("it is gone", func() bool {
			_, err := api.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err) && apierrors.ReasonForError(err) == metav1.StatusReasonNotFound
		})
		err = api.Delete(ctx, name, metav1.DeleteOptions{})
		assert(apierrors.IsNotFound(err), "%v", err)
	})
	collection, ok := any(api).(interface {
		DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	})
	if !ok || kind == "namespaces" {
		return
	}
	check(kind+"/deletecollection", func(ctx context.Context) {
		must(collection.DeleteCollection(ctx, metav1.DeleteOptions{
			GracePeriodSeconds: ptr(int64(0)), PropagationPolicy: ptr(metav1.DeletePropagationBackground),
		}, labelled))
		eventually("all are gone", func() bool { return len(names(got(api.List(ctx, labelled)))) == 0 })
	})
}
