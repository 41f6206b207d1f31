// Command protofields prints how protobuf has the fields of the built-in types, for
// scripts/record-schema.py: a line for each with the type as OpenAPI names it, the field as JSON
// names it, and its number. "2.19" is field 19 of the message in field 2: a struct that JSON inlines
// and protobuf does not. An asterisk behind it: JSON has the field also if it is zero.
package main

import (
	"bufio"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// CustomResourceDefinitions are not here: what writes them sends JSON.
var roots = []any{aggregator.APIService{}}

func openAPIName(t reflect.Type) string {
	path := strings.Replace(t.PkgPath(), "k8s.io/", "io.k8s.", 1)
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

// A struct that is a message of its own fields, and no scalar to JSON.
func isPlain(t reflect.Type) bool {
	_, scalar := reflect.PointerTo(t).MethodByName("UnmarshalJSON")
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), "k8s.io/") && !scalar
}

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

type lister struct {
	seen  map[reflect.Type]bool
	lines []string
}

func (l *lister) list(t reflect.Type) {
	if t = bare(t); !isPlain(t) || l.seen[t] {
		return
	}
	l.seen[t] = true
	l.listFields(openAPIName(t), "", t)
}

func (l *lister) listFields(owner, wrapper string, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		words := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(words) < 2 {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			l.listFields(owner, wrapper+words[1]+".", field.Type)
			continue
		}
		mark := ""
		if field.Type.Kind() == reflect.Pointer || !strings.Contains(options, "omit") {
			mark = "*"
		}
		l.lines = append(l.lines, owner+" "+name+" "+wrapper+words[1]+mark)
		l.list(field.Type)
	}
}

func main() {
	l := lister{seen: map[reflect.Type]bool{}}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		l.list(t)
	}
	for _, root := range roots {
		l.list(reflect.TypeOf(root))
	}
	sort.Strings(l.lines)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, line := range l.lines {
		out.WriteString(line + "\n")
	}
}
