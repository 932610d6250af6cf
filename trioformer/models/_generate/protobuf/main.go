// Command protobuf writes the table of the API's protobuf types, from the Go types of a Kubernetes release.
//
// Its arguments are the directory of the table, the file for the names of Go types, and the modules of models, such as
// core_v1.  The file has a line for each type with fields whose Go type does not follow from the table, such as
// "core_v1.PodSpec restartPolicy=v1.RestartPolicy".
//
// The .proto files do not suffice: the names in JSON, inlined structs, pointers and omitempty decide what an absent
// field means.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// The types whose values in JSON are not objects of their fields, by the letter of their kind in the table.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                "T",
	reflect.TypeFor[metav1.MicroTime]():                           "U",
	reflect.TypeFor[metav1.Duration]():                            "D",
	reflect.TypeFor[metav1.FieldsV1]():                            "F",
	reflect.TypeFor[resource.Quantity]():                          "Q",
	reflect.TypeFor[intstr.IntOrString]():                         "I",
	reflect.TypeFor[runtime.RawExtension]():                       "R",
	reflect.TypeFor[apiextensions.JSON]():                         "F",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "A",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "B",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "C",
}

var scalars = map[reflect.Kind]string{
	reflect.String: "s", reflect.Bool: "b", reflect.Int32: "i", reflect.Int64: "i", reflect.Uint32: "i",
	reflect.Uint64: "i", reflect.Int: "i", reflect.Float64: "d", reflect.Float32: "e", reflect.Uint8: "i", reflect.Uint16: "i",
}

// moduleOf returns the module of a Go package's models, such as apps_v1.
func moduleOf(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	group, version := parts[len(parts)-2], parts[len(parts)-1]
	return group + "_" + version
}

type table struct {
	modules map[string]map[string]string // module → type → line
	named   []string                     // the lines with the names of Go types
}

// usual returns the name of a value's Go type that the table implies.
func usual(typ reflect.Type) string {
	if _, ok := special[typ]; ok || typ.Kind() == reflect.Struct {
		return typ.String()
	}
	switch typ.Kind() {
	case reflect.Slice:
		return "[]" + usual(typ.Elem())
	case reflect.Map:
		return "map[string]" + usual(typ.Elem())
	case reflect.Int32, reflect.Uint8, reflect.Bool, reflect.String, reflect.Float64:
		return typ.Kind().String()
	}
	return ""
}

func (t *table) add(typ reflect.Type) {
	module := moduleOf(typ)
	if t.modules[module] == nil {
		t.modules[module] = map[string]string{}
	}
	if _, done := t.modules[module][typ.Name()]; done {
		return
	}
	t.modules[module][typ.Name()] = "" // a type may contain itself
	type field struct {
		number int
		text   string
	}
	var fields []field
	var named []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(tag) < 2 || f.Tag.Get("protobuf") == "-" {
			continue
		}
		var number int
		if _, err := fmt.Sscan(tag[1], &number); err != nil {
			panic(fmt.Sprintf("%s.%s: %v", typ, f.Name, err))
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		flags := ""
		// omitempty has no effect on a struct, such as a Time.
		if strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Struct {
			flags = "?"
		}
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			name = "&" // its fields are members of this type's object
		}
		if name == "" {
			panic(fmt.Sprintf("%s.%s has no name in JSON", typ, f.Name))
		}
		value := f.Type
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		if value.String() != usual(value) {
			named = append(named, name+"="+value.String())
		}
		fields = append(fields, field{number, fmt.Sprintf("%d%s%s %s", number, flags, name, t.kindOf(f.Type, module))})
	}
	if named != nil {
		t.named = append(t.named, module+"."+typ.Name()+" "+strings.Join(named, " "))
	}
	sort.Slice(fields, func(i, j int) bool { return fields[i].number < fields[j].number })
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.text
	}
	t.modules[module][typ.Name()] = strings.Join(texts, ",")
}

// kindOf returns the kind of a value: * for a pointer, [] for a list, {} for a map, and a letter or the name of a type.
func (t *table) kindOf(typ reflect.Type, module string) string {
	if letter, ok := special[typ]; ok {
		if typ.PkgPath() == "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1" && letter != "F" {
			t.add(reflect.TypeFor[apiextensions.JSONSchemaProps]())
		}
		return letter
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return "*" + t.kindOf(typ.Elem(), module)
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		if _, isMessage := reflect.New(typ).Interface().(interface{ Marshal() ([]byte, error) }); isMessage {
			return "[=" + t.kindOf(typ.Elem(), module) // a message whose field 1 has the items
		}
		return "[" + t.kindOf(typ.Elem(), module)
	case reflect.Map:
		if typ.Key().Kind() != reflect.String {
			panic("a map with keys of " + typ.Key().String())
		}
		return "{" + t.kindOf(typ.Elem(), module)
	case reflect.Struct:
		t.add(typ)
		if other := moduleOf(typ); other != module {
			return other + "." + typ.Name()
		}
		return typ.Name()
	}
	if letter, ok := scalars[typ.Kind()]; ok {
		return letter
	}
	panic("no kind for " + typ.String())
}

func main() {
	folder, names := os.Args[1], os.Args[2]
	wanted := map[string]bool{}
	for _, module := range os.Args[3:] {
		wanted[module] = true
	}
	all := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	t := &table{modules: map[string]map[string]string{}}
	for gvk, typ := range all.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !wanted[moduleOf(typ)] {
			continue
		}
		t.add(typ)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[metav1.Status](), reflect.TypeFor[metav1.PartialObjectMetadata](),
		reflect.TypeFor[metav1.PartialObjectMetadataList](), reflect.TypeFor[metav1.APIResourceList](),
	} {
		t.add(typ)
	}
	sort.Strings(t.named)
	if err := os.WriteFile(names, []byte(strings.Join(t.named, "\n")+"\n"), 0o644); err != nil {
		panic(err)
	}
	for module, types := range t.modules {
		names := make([]string, 0, len(types))
		for name := range types {
			names = append(names, name)
		}
		sort.Strings(names)
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, "%s:%s\n", name, types[name])
		}
		if err := os.WriteFile(filepath.Join(folder, module+".txt"), []byte(text.String()), 0o644); err != nil {
			panic(err)
		}
	}
}
