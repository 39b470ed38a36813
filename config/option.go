package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// EnvPrefix starts the name of every environment variable of the bridge.
const EnvPrefix = "BRIDGE_"

// Option is one setting: a leaf of Config.
type Option struct {
	// Key is the full name, like timeouts.round. It is the name of the flag too.
	Key string
	// Path is the setting's place in the file. It differs from Key for a setting that
	// has the name of its section: questions is questions.policy there, too.
	Path string
	// Doc explains the setting, in one paragraph.
	Doc string
	// List reports whether the setting takes several values (a list, or headers).
	List bool

	field reflect.StructField
	index []int // path of the field from the root struct
}

// Env returns the name of the option's environment variable.
func (o Option) Env() string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(o.Key))
}

// in returns the option's field within root, which has the type the option was
// made from.
func (o Option) in(root reflect.Value) reflect.Value { return root.FieldByIndex(o.index) }

// like is an example of a value, for a list or a mapping, as a file has it.
func (o Option) like() string { return o.field.Tag.Get("like") }

func (o Option) secret() bool { return o.field.Tag.Get("secret") != "" }

// Form tells what a value of the option looks like, bounds included.
func (o Option) Form() string {
	tag := o.field.Tag
	switch {
	case tag.Get("oneof") != "":
		return strings.Join(strings.Split(tag.Get("oneof"), "|"), ", ")
	case tag.Get("min") != "":
		return tag.Get("min") + " to " + tag.Get("max")
	case tag.Get("url") != "":
		return "URL"
	case o.field.Type.Kind() == reflect.Slice:
		return "list"
	case o.field.Type.Kind() == reflect.Map:
		return "NAME: VALUE"
	default:
		return "text"
	}
}

// Options lists every setting that all three sources can set, in the order of
// the documentation.
func Options() []Option { return slices.Clone(rootSchema.options) }

// schema is what can be set in one struct, and the sections it falls into.
type schema struct {
	options  []Option
	sections map[string]string // key prefix -> documentation
}

var (
	rootSchema  = newSchema(reflect.TypeFor[Config]())
	mountSchema = newSchema(reflect.TypeFor[Mount]())
)

const upstreamsKey = "upstreams"

func newSchema(t reflect.Type) *schema {
	s := &schema{sections: map[string]string{}}
	s.add(t, "", nil)
	return s
}

func (s *schema) add(t reflect.Type, prefix string, index []int) {
	for i := range t.NumField() {
		field := t.Field(i)
		at := append(slices.Clone(index), i)
		key := prefix + field.Tag.Get("key")
		place := key
		if field.Tag.Get("named") == "section" {
			key = strings.TrimSuffix(prefix, ".")
		}
		doc := fieldDocs[t.Name()+"."+field.Name]
		switch {
		case field.Anonymous:
			s.add(field.Type, prefix, at)
		case field.Type.Kind() == reflect.Struct:
			s.sections[key] = doc
			s.add(field.Type, key+".", at)
		case key == upstreamsKey:
			s.sections[key] = doc
		default:
			kind := field.Type.Kind()
			list := kind == reflect.Slice || kind == reflect.Map
			s.options = append(s.options, Option{Key: key, Path: place, Doc: doc, List: list, field: field, index: at})
		}
	}
}

func (s *schema) find(key string) (Option, bool) {
	at := slices.IndexFunc(s.options, func(o Option) bool { return o.Key == key || o.Path == key })
	if at < 0 {
		return Option{}, false
	}
	return s.options[at], true
}

// names lists the keys directly below prefix, sections included.
func (s *schema) names(prefix string) []string {
	var names []string
	for _, o := range s.options {
		rest, ok := strings.CutPrefix(o.Path, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if s == rootSchema && prefix == "" {
		names = append(names, upstreamsKey)
	}
	return names
}

// format writes a field as the sources would spell it.
func format(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return formatDuration(value)
	case fmt.Stringer: // Size and SizeOrOff
		return value.String()
	default:
		return yamlScalar(value)
	}
}
