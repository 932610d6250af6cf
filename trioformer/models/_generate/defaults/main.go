// Command defaults writes the table of the defaults of the API's types that do not depend on other fields, with the
// defaulting functions of a Kubernetes release.
//
// Its arguments are the file of the table, and the modules of models, such as core_v1.  For each struct in each kind, it
// sets the defaults in an object that has only this struct, and then again with each of the struct's other fields set.
// A default that is then different depends on this field.  The table does not have such defaults, which are reported
// on standard error.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// The structs whose values in JSON are not objects of their fields, or have no defaults.
var leaves = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time]():          true,
	reflect.TypeFor[metav1.MicroTime]():     true,
	reflect.TypeFor[metav1.Duration]():      true,
	reflect.TypeFor[metav1.FieldsV1]():      true,
	reflect.TypeFor[metav1.ObjectMeta]():    true,
	reflect.TypeFor[metav1.TypeMeta]():      true,
	reflect.TypeFor[resource.Quantity]():    true,
	reflect.TypeFor[intstr.IntOrString]():   true,
	reflect.TypeFor[runtime.RawExtension](): true,
}

// nameOf returns the module and the name of a type's model, such as apps_v1.Deployment.
func nameOf(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return parts[len(parts)-2] + "_" + parts[len(parts)-1] + "." + t.Name()
}

// structOf returns the struct that a field has, is, or contains in a list or a map.
func structOf(t reflect.Type) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return structOf(t.Elem())
	case reflect.Struct:
		return t, !leaves[t]
	}
	return nil, false
}

// enter sets a field to a value with one struct, and returns this struct.
func enter(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return enter(v.Elem())
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		return enter(v.Index(0))
	}
	return v
}

// fill sets a field to a value other than the zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Type().Elem().Kind() != reflect.Struct {
			fill(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Type().Elem().Kind() != reflect.Struct {
			fill(v.Index(0))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && (f.Anonymous || v.NumField() == 1) {
				fill(v.Field(i))
				return
			}
		}
		if quantity, ok := v.Addr().Interface().(*resource.Quantity); ok {
			*quantity = resource.MustParse("1")
		}
	}
}

type defaults map[string]string // the name of a field in JSON → its default as JSON

type recorder struct {
	scheme  *runtime.Scheme
	root    reflect.Type
	found   map[string]map[string]defaults // the type → the kind and path → its defaults
	depends map[string]map[string]bool     // the field → the fields that it depends on
}

// at returns the struct at a path of fields, whose parents are set where they are absent.
func at(object reflect.Value, path []int) reflect.Value {
	v := object
	for _, index := range path {
		v = enter(v.Field(index))
	}
	return v
}

// set returns the fields of the struct at a path that the defaulting functions set.
func (r *recorder) set(path []int, filled int) defaults {
	object := reflect.New(r.root)
	before := at(object.Elem(), path)
	if filled >= 0 {
		fill(before.Field(filled))
	}
	wasZero := make([]bool, before.NumField())
	for i := range wasZero {
		wasZero[i] = before.Field(i).IsZero()
	}
	r.scheme.Default(object.Interface().(runtime.Object))
	after := at(object.Elem(), path)
	set := defaults{}
	for i, zero := range wasZero {
		f := after.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		value := after.Field(i)
		_, isTime := value.Interface().(*metav1.Time)
		if !zero || value.IsZero() || isTime || name == "" || name == "-" {
			continue
		}
		if _, isStruct := structOf(f.Type); isStruct && f.Type.Kind() == reflect.Struct {
			continue // it has its own path
		}
		if strings.Contains(options, "omitempty") && (f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map) && value.Len() == 0 {
			continue
		}
		text, err := json.Marshal(value.Interface())
		if err != nil {
			panic(err)
		}
		set[name] = string(text)
	}
	return set
}

func (r *recorder) record(typ reflect.Type, path []int, names string, parents []reflect.Type) {
	for _, parent := range parents {
		if parent == typ {
			return
		}
	}
	set := r.set(path, -1)
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if len(set) > 0 && f.IsExported() {
			other := r.set(path, i)
			for name, value := range set {
				if name != tag && other[name] != value {
					key := nameOf(typ) + "." + name
					if r.depends[key] == nil {
						r.depends[key] = map[string]bool{}
					}
					r.depends[key][f.Name] = true
				}
			}
		}
	}
	if r.found[nameOf(typ)] == nil {
		r.found[nameOf(typ)] = map[string]defaults{}
	}
	r.found[nameOf(typ)][nameOf(r.root)+names] = set
	for i := range typ.NumField() {
		f := typ.Field(i)
		inner, ok := structOf(f.Type)
		if !ok || !f.IsExported() || f.Type.Kind() == reflect.Map {
			continue
		}
		step := ""
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			step = "." + tag
		}
		r.record(inner, append(append([]int{}, path...), i), names+step, append(append([]reflect.Type{}, parents...), typ))
	}
}

func text(set defaults) string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%q:%s", name, set[name])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func main() {
	wanted := map[string]bool{}
	for _, module := range os.Args[2:] {
		wanted[module] = true
	}
	r := &recorder{found: map[string]map[string]defaults{}, depends: map[string]map[string]bool{}}
	for _, r.scheme = range []*runtime.Scheme{legacyscheme.Scheme, aggregator.Scheme} {
		for gvk, typ := range r.scheme.AllKnownTypes() {
			_, isObject := reflect.New(typ).Interface().(metav1.Object)
			if isObject && wanted[strings.Split(nameOf(typ), ".")[0]] && gvk.Version != runtime.APIVersionInternal {
				r.root = typ
				r.record(typ, nil, "", nil)
			}
		}
	}
	var lines []string
	for typ, paths := range r.found {
		counts := map[string][]string{}
		for path, set := range paths {
			for name := range set {
				if why := r.depends[typ+"."+name]; why != nil {
					delete(set, name)
				}
			}
			counts[text(set)] = append(counts[text(set)], path)
		}
		most := ""
		for each, where := range counts {
			if len(where) > len(counts[most]) || len(where) == len(counts[most]) && each > most {
				most = each
			}
		}
		for each, where := range counts {
			for _, path := range where {
				if each != most {
					lines = append(lines, path+" "+each+"\n")
				}
			}
		}
		if most != "{}" {
			lines = append(lines, typ+" "+most+"\n")
		}
	}
	for key, why := range r.depends {
		fmt.Fprintln(os.Stderr, key, "depends on", why)
	}
	sort.Strings(lines)
	if err := os.WriteFile(os.Args[1], []byte(strings.Join(lines, "")), 0o644); err != nil {
		panic(err)
	}
}
