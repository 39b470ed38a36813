package demo

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// form is an elicitation's schema as a person can fill it in.
type form struct{ fields []field }

// field is one property of the schema.
type field struct {
	name, title, description string
	kind                     string // "string", "number", "integer", "boolean" or "array"
	required                 bool
	options                  []option // of an enum or a multi-select; nil for free input
	fallback                 any      // default; nil when there is none
	min, max                 *float64 // of a number; of a string's length; of an array's
}

type option struct{ value, title string }

// property is the JSON of one property in every spelling of the legacy
// revisions: enum with enumNames, oneOf with titles, and items for a
// multi-select.
type property struct {
	Type, Title, Description string
	Default                  any
	Enum, EnumNames          []string
	OneOf, AnyOf             []struct{ Const, Title string }
	Items                    *property
	Minimum, Maximum         *float64
	MinLength, MaxLength     *float64
	MinItems, MaxItems       *float64
}

// newForm reads a requested schema. Its fields come in the order of "required",
// then by name: the SDK hands the schema over as a map.
func newForm(schema any) (form, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return form{}, fmt.Errorf("the form's schema: %w", err)
	}
	var s struct {
		Properties map[string]property
		Required   []string
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return form{}, fmt.Errorf("the form's schema: %w", err)
	}
	names := slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { _, ok := s.Properties[name]; return !ok })
	for _, name := range sorted(s.Properties) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var f form
	for _, name := range names {
		f.fields = append(f.fields, newField(name, s.Properties[name], slices.Contains(s.Required, name)))
	}
	return f, nil
}

func newField(name string, p property, required bool) field {
	f := field{name: name, title: clip(p.Title), description: clip(p.Description), kind: p.Type, required: required, fallback: p.Default}
	if f.title == "" {
		f.title = clip(name)
	}
	choices := p
	switch p.Type {
	case "array":
		f.min, f.max = p.MinItems, p.MaxItems
		if p.Items != nil {
			choices = *p.Items
		}
	case "string":
		f.min, f.max = p.MinLength, p.MaxLength
	default:
		f.min, f.max = p.Minimum, p.Maximum
	}
	for i, v := range choices.Enum {
		o := option{v, v}
		if i < len(choices.EnumNames) {
			o.title = choices.EnumNames[i]
		}
		f.options = append(f.options, o)
	}
	for _, v := range append(choices.OneOf, choices.AnyOf...) {
		f.options = append(f.options, option{v.Const, v.Title})
	}
	return f
}

// parse reads what a person typed for the field. The error says in plain words
// what is wanted.
func (f field) parse(text string) (any, error) {
	switch {
	case f.kind == "array":
		return f.choices(text)
	case len(f.options) > 0:
		return f.choice(text)
	case f.kind == "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			return true, nil
		case "n", "no", "false":
			return false, nil
		}
		return nil, fmt.Errorf("please type y or n")
	case f.kind == "integer" || f.kind == "number":
		return f.number(text)
	}
	if n := float64(utf8.RuneCountInString(text)); !f.within(n) {
		return nil, fmt.Errorf("please type %s characters", f.bounds())
	}
	return text, nil
}

func (f field) number(text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) || (f.kind == "integer" && n != math.Trunc(n)) {
		return nil, fmt.Errorf("please type a %snumber", map[bool]string{true: "whole "}[f.kind == "integer"])
	}
	if !f.within(n) {
		return nil, fmt.Errorf("please type a number %s", f.bounds())
	}
	return n, nil
}

// choice takes the number of an option, or else its title or value, in whatever case if there is no other.
func (f field) choice(text string) (any, error) {
	for _, meant := range [...]func(i int, o option) bool{
		func(i int, _ option) bool { return text == strconv.Itoa(i+1) },
		func(_ int, o option) bool { return text == o.title },
		func(_ int, o option) bool { return text == o.value },
		func(_ int, o option) bool {
			return strings.EqualFold(text, o.title) || strings.EqualFold(text, o.value)
		},
	} {
		for i, o := range f.options {
			if meant(i, o) {
				return o.value, nil
			}
		}
	}
	return nil, fmt.Errorf("please type a number from 1 to %d", len(f.options))
}

func (f field) choices(text string) (any, error) {
	picked := []any{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		v, err := f.choice(part)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(picked, v) {
			picked = append(picked, v)
		}
	}
	if !f.within(float64(len(picked))) {
		return nil, fmt.Errorf("please choose %s", f.bounds())
	}
	return picked, nil
}

func (f field) within(n float64) bool {
	return (f.min == nil || n >= *f.min) && (f.max == nil || n <= *f.max)
}

func (f field) bounds() string {
	switch {
	case f.min != nil && f.max != nil:
		return fmt.Sprintf("from %v to %v", *f.min, *f.max)
	case f.min != nil:
		return fmt.Sprintf("from %v up", *f.min)
	case f.max != nil:
		return fmt.Sprintf("up to %v", *f.max)
	}
	return ""
}

// hint says what may be typed, with the default.
func (f field) hint() string {
	var parts []string
	switch {
	case f.kind == "array":
		parts = append(parts, fmt.Sprintf("numbers 1-%d, separated by commas", len(f.options)))
	case len(f.options) > 0:
		parts = append(parts, fmt.Sprintf("1-%d", len(f.options)))
	case f.kind == "boolean":
		parts = append(parts, "y/n")
	case f.min != nil || f.max != nil:
		parts = append(parts, f.bounds())
	}
	switch {
	case f.fallback != nil:
		parts = append(parts, "Enter = "+f.shown(f.fallback))
	case !f.required:
		parts = append(parts, "Enter = leave out")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// shown writes a value the way the person chooses it.
func (f field) shown(v any) string {
	if b, ok := v.(bool); ok {
		return map[bool]string{true: "y", false: "n"}[b]
	}
	if list, ok := v.([]any); ok {
		var all []string
		for _, item := range list {
			all = append(all, f.shown(item))
		}
		return strings.Join(all, ", ")
	}
	for i, o := range f.options {
		if o.value == v {
			return strconv.Itoa(i + 1)
		}
	}
	return clip(fmt.Sprint(v))
}

// auto is the answer that the demo gives by itself: the default, else the
// simplest thing that the schema allows.
func (f field) auto() any {
	low := 0.0
	if f.min != nil {
		low = *f.min
	}
	switch {
	case f.fallback != nil:
		return f.fallback
	case f.kind == "array":
		picked := []any{}
		for i := 0; i < int(low) && i < len(f.options); i++ {
			picked = append(picked, f.options[i].value)
		}
		return picked
	case len(f.options) > 0:
		return f.options[0].value
	case f.kind == "boolean":
		return true
	case f.kind == "integer" || f.kind == "number":
		return math.Ceil(low)
	}
	return "demo" + strings.Repeat("!", min(max(int(low)-4, 0), 100))
}
