// Fills every kind of a Kubernetes release with random values, and reads protobuf that others have written of them.
//
//	protobuf-go fill SEED: for each kind its name, its protobuf, its JSON and the JSON of a server
//	protobuf-go check: reads such records (name, protobuf, JSON), and prints those where the two differ
//
// A record is a list of byte strings, each after its length in four bytes, the highest first.
// The JSON of a server is that of an object that was stored as protobuf, in which empty lists are nil.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strconv"
	"time"

	apps "k8s.io/api/apps/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"
)

var texts = []string{`{}`, `{"f:a":{"k:{\"n\":1}":{}}}`, `{"a":[1,2.5,null,true,"ü"],"b":{"c":{}}}`}

func oneOf[T any](c randfill.Continue, values ...T) T {
	return values[c.Intn(len(values))]
}

// Instants that both encodings have: from the year 1 to 9999, most of them of this century.
func instant(c randfill.Continue) time.Time {
	seconds := int64(c.Uint32())
	if c.Intn(8) == 0 {
		seconds = oneOf[int64](c, -62135596799, -1, 0, 1, 253402300799)
	}
	return time.Unix(seconds, oneOf[int64](c, 0, 0, 5000, int64(c.Intn(1e9)))).UTC()
}

func anyJSON(c randfill.Continue) []byte {
	return []byte(oneOf(c, append(texts, `1`, `"ü"`, `[]`, `0.5`, `false`, `[[],{}]`)...))
}

func float(c randfill.Continue) float64 {
	return oneOf(c, 0, math.Copysign(0, -1), 1, -3, 0.1, c.Float64(), -c.Float64()*1e6, 1e-7, 1e20, 1e21, 123456789012345678, math.MaxFloat64, 5e-324)
}

// The types that do not take every value of their fields, and those of which fields exclude each other.
var funcs = []any{
	func(v *metav1.TypeMeta, c randfill.Continue) {},
	func(v *metav1.Time, c randfill.Continue) {
		if c.Intn(4) > 0 {
			v.Time = instant(c)
		}
	},
	func(v *metav1.MicroTime, c randfill.Continue) {
		if c.Intn(4) > 0 {
			v.Time = instant(c)
		}
	},
	// A pointer to null is no pointer in JSON.
	func(v **metav1.Time, c randfill.Continue) {
		if *v = nil; c.Bool() {
			*v = &metav1.Time{Time: instant(c)}
		}
	},
	func(v **metav1.MicroTime, c randfill.Continue) {
		if *v = nil; c.Bool() {
			*v = &metav1.MicroTime{Time: instant(c)}
		}
	},
	func(v **apiextensions.JSON, c randfill.Continue) {
		if *v = nil; c.Bool() {
			*v = &apiextensions.JSON{Raw: anyJSON(c)}
		}
	},
	func(v *metav1.Duration, c randfill.Continue) {
		v.Duration = time.Duration(oneOf[int64](c, 0, 1, -1500, int64(c.Uint64()), int64(c.Intn(1e9)), 90*int64(time.Minute), math.MaxInt64, math.MinInt64))
	},
	func(v *resource.Quantity, c randfill.Continue) {
		*v = resource.MustParse(oneOf(c, "0", "1", "-1", "100m", "1.5", "2Gi", "1e3", "3E", "0.1Ki", "1n", "9223372036854775807", "12345678901234567890"))
	},
	func(v *intstr.IntOrString, c randfill.Continue) {
		*v = oneOf(c, intstr.FromInt32(0), intstr.FromInt32(-int32(c.Intn(1e6))), intstr.FromString("50%"), intstr.FromString(""))
	},
	func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(oneOf(c, texts...)) },
	func(v *metav1.FieldsV1, c randfill.Continue) { v.SetRawString(oneOf(c, texts...)) },
	func(v *float64, c randfill.Continue) { *v = float(c) },
	func(v *apiextensions.JSON, c randfill.Continue) {
		if c.Intn(4) > 0 {
			v.Raw = anyJSON(c)
		}
	},
	func(v *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
		if c.Bool() {
			v.Schema = filled(c)
		} else {
			v.JSONSchemas = append(v.JSONSchemas, *filled(c), *filled(c))
		}
	},
	func(v *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) {
		if v.Allows = c.Bool(); v.Allows && c.Bool() {
			v.Schema = filled(c)
		}
	},
	func(v *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) {
		if c.Bool() {
			v.Schema = filled(c)
		} else {
			v.Property = []string{"a", c.String(0)}
		}
	},
	// Each has 19 fields with schemas inside; more than one in ten never ends.
	func(v *apiextensions.JSONSchemaProps, c randfill.Continue) {
		fields := reflect.ValueOf(v).Elem()
		for i := range fields.NumField() {
			field := fields.Field(i)
			_, hasSchemas := schemas[field.Type()]
			if !hasSchemas || c.Intn(20) == 0 {
				c.Fill(field.Addr().Interface())
			}
		}
		if v.Ref != nil && *v.Ref == "" {
			v.Ref = nil
		}
	},
}

var schemas = map[reflect.Type]struct{}{
	reflect.TypeFor[*apiextensions.JSONSchemaPropsOrArray]():    {},
	reflect.TypeFor[*apiextensions.JSONSchemaPropsOrBool]():     {},
	reflect.TypeFor[*apiextensions.JSONSchemaProps]():           {},
	reflect.TypeFor[[]apiextensions.JSONSchemaProps]():          {},
	reflect.TypeFor[map[string]apiextensions.JSONSchemaProps](): {},
	reflect.TypeFor[apiextensions.JSONSchemaDefinitions]():      {},
	reflect.TypeFor[apiextensions.JSONSchemaDependencies]():     {},
}

func filled(c randfill.Continue) *apiextensions.JSONSchemaProps {
	v := &apiextensions.JSONSchemaProps{}
	c.Fill(v)
	return v
}

// Chances of nil: from objects that have almost everything to almost empty ones.
var chances = []float64{0.05, 0.5, 0.3, 0.9}

func fill(seed int64, out io.Writer) error {
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	random := randfill.New().NilChance(chances[int(seed)%len(chances)]).NumElements(0, 2).MaxDepth(60).Funcs(funcs...)
	random.RandSource(rand.NewSource(seed))
	for _, kind := range kinds() {
		object, err := scheme.Scheme.New(kind)
		if err != nil {
			return err
		}
		random.Fill(object)
		object.GetObjectKind().SetGroupVersionKind(kind)
		data, err := runtime.Encode(encoder, object)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		stored, _, err := encoder.Decode(data, nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		// As kube-apiserver does it for JSON, see pkg/apis/apps/v1/conversion.go.
		setTypes(stored, metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"})
		original, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		served, err := json.Marshal(stored)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		apiVersion, name := kind.ToAPIVersionAndKind()
		if err := write(out, []byte(apiVersion), []byte(name), data, original, served); err != nil {
			return err
		}
	}
	return nil
}

func setTypes(object runtime.Object, meta metav1.TypeMeta) {
	var sets []apps.StatefulSet
	switch v := object.(type) {
	case *apps.StatefulSet:
		sets = []apps.StatefulSet{*v}
	case *apps.StatefulSetList:
		sets = v.Items
	}
	for _, set := range sets {
		for i := range set.Spec.VolumeClaimTemplates {
			set.Spec.VolumeClaimTemplates[i].TypeMeta = meta
		}
	}
}

type proto interface{ Marshal() ([]byte, error) }

func kinds() []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	common := reflect.TypeFor[metav1.Status]().PkgPath()
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		// Each group has the same options.
		isRepeated := typ.PkgPath() == common && kind.Group != "" && kind.Group != metav1.GroupName
		_, hasProtobuf := reflect.New(typ).Interface().(proto)
		if kind.Version != runtime.APIVersionInternal && hasProtobuf && !isRepeated && kind.Kind != "WatchEvent" {
			found = append(found, kind)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}

// check prints a line for each record whose protobuf is not what its JSON says: its name, and the JSON of both.
func check(in io.Reader, out io.Writer) error {
	decoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	results := json.NewEncoder(out)
	for {
		var record [4][]byte
		for i := range record {
			part, err := read(in)
			if err == io.EOF && i == 0 {
				return nil
			}
			if err != nil {
				return err
			}
			record[i] = part
		}
		kind := schema.FromAPIVersionAndKind(string(record[0]), string(record[1]))
		wanted, err := scheme.Scheme.New(kind)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(record[3], wanted); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		setTypes(wanted, metav1.TypeMeta{})
		result := map[string]any{"apiVersion": string(record[0]), "kind": string(record[1])}
		found, _, err := decoder.Decode(record[2], nil, nil)
		switch {
		case err != nil:
			result["error"] = err.Error()
		case !equality.Semantic.DeepEqual(wanted, found):
			result["wanted"], result["found"] = wanted, found
		}
		if err := results.Encode(result); err != nil {
			return err
		}
	}
}

func write(out io.Writer, parts ...[]byte) error {
	for _, part := range parts {
		if err := binary.Write(out, binary.BigEndian, uint32(len(part))); err != nil {
			return err
		}
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func read(in io.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(in, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	part := make([]byte, size)
	_, err := io.ReadFull(in, part)
	return part, err
}

func run() error {
	for _, add := range []func(*runtime.Scheme) error{
		apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme.Scheme); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(os.Stdout)
	if os.Args[1] == "check" {
		if err := check(bufio.NewReader(os.Stdin), out); err != nil {
			return err
		}
		return out.Flush()
	}
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		return err
	}
	if err := fill(seed, out); err != nil {
		return err
	}
	return out.Flush()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
