// Package form turns the schema of an elicitation into fields that a person can
// fill in, and what was filled in back into the content of an answer.
//
// It knows every primitive of every revision: text with a format and a length,
// numbers, yes or no, one of several values with or without titles (enum,
// enumNames, oneOf), and several of them (items with enum or anyOf). It knows
// nothing of pages: package page draws the fields.
package form

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/rawjson"
)

// Bounds of a form. A schema beyond them is refused with an error that says so.
const (
	MaxFields  = 256
	MaxOptions = 1024 // of one field
	MaxChoices = 4096 // options of all fields together: each is drawn whenever the page is
	maxText    = 2000 // characters shown of a server's text; more is cut
)

// Form is the requestedSchema of one elicitation.
type Form struct {
	Fields []Field // in the order of the schema's properties
}

// Kind says how a field is filled in.
type Kind string

// The kinds of fields.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	Choice  Kind = "choice"  // one option
	Choices Kind = "choices" // any number of options
)

// Field is one property of the schema. Its texts are a stranger's: they are cut to
// a bounded length, and must be escaped where they are shown.
type Field struct {
	Name        string
	Title       string // the name when the schema has none
	Description string
	Kind        Kind
	Format      string // of Text: email, uri, date, date-time; others are not checked
	Required    bool
	Options     []Option
	Default     []string // as a browser would submit it; of Choices, options only, each once
	strayed     bool     // the schema's default is not one that the field can have
	min, max    bound    // of a number, of a text's characters, of the number of options
}

// Option is one value that a field can have.
type Option struct {
	Value string // sent to the server; may hold halves of characters (rawjson.Name)
	Title string // shown
}

// bound is the least or greatest value of something; its text is the schema's own.
type bound struct {
	set   bool
	value float64
	text  string
}

// Parse reads a requestedSchema, which must be valid JSON. The error says what a
// form cannot show.
func Parse(schema []byte) (Form, error) {
	properties := rawjson.Get(schema, "properties")
	if rawjson.KindOf(properties) != rawjson.Object {
		return Form{}, errors.New("the server's form has no properties")
	}
	var f Form
	fields := map[string]int{}
	options := 0
	for name, property := range rawjson.Members(properties) {
		if len(f.Fields) == MaxFields {
			return Form{}, fmt.Errorf("the server's form has more than %d fields", MaxFields)
		}
		field, err := parseField(string(name), property)
		if err != nil {
			return Form{}, err
		}
		if options += len(field.Options); options > MaxChoices {
			return Form{}, fmt.Errorf("the server's form has more than %d options", MaxChoices)
		}
		fields[field.Name] = len(f.Fields)
		f.Fields = append(f.Fields, field)
	}
	for name := range rawjson.Elements(rawjson.Get(schema, "required")) {
		text, _ := rawjson.NameBytes(name)
		if i, ok := fields[string(text)]; ok {
			f.Fields[i].Required = true
		}
	}
	return f, nil
}

func parseField(name string, p []byte) (Field, error) {
	f := Field{Name: name, Title: text(p, "title"), Description: text(p, "description")}
	if f.Title == "" {
		f.Title = shown(name)
	}
	options := p
	switch typ := text(p, "type"); typ {
	case "string":
		f.Kind, f.Format = Text, text(p, "format")
		f.min, f.max = limit(p, "minLength"), limit(p, "maxLength")
	case "integer", "number":
		f.Kind = Kind(typ)
		f.min, f.max = limit(p, "minimum"), limit(p, "maximum")
	case "boolean":
		f.Kind = Boolean
	case "array":
		f.Kind = Choices
		options = rawjson.Get(p, "items")
		f.min, f.max = limit(p, "minItems"), limit(p, "maxItems")
	default:
		return Field{}, fmt.Errorf("a form cannot show the field %q of type %q", cut(name), typ)
	}
	if err := f.parseOptions(options); err != nil {
		return Field{}, err
	}
	f.parseDefault(rawjson.Get(p, "default"))
	return f, nil
}

// parseOptions reads every spelling of an enumeration. What has options is chosen,
// not typed. Beyond MaxOptions nothing is read.
func (f *Field) parseOptions(p []byte) error {
	titles := []string{}
	for title := range rawjson.Elements(rawjson.Get(p, "enumNames")) { // until 2025-06-18
		if len(titles) == MaxOptions {
			break
		}
		t, _ := rawjson.Text(title)
		titles = append(titles, cut(t))
	}
	for value := range rawjson.Elements(rawjson.Get(p, "enum")) {
		v, _ := rawjson.Name(value)
		o := Option{Value: v, Title: shown(v)}
		if i := len(f.Options); i < len(titles) {
			o.Title = titles[i]
		}
		if f.Options = append(f.Options, o); len(f.Options) > MaxOptions {
			break
		}
	}
	for _, member := range [...]string{"oneOf", "anyOf"} {
		for value := range rawjson.Elements(rawjson.Get(p, member)) {
			v, _ := rawjson.Name(rawjson.Get(value, "const"))
			if f.Options = append(f.Options, Option{Value: v, Title: cmp.Or(text(value, "title"), shown(v))}); len(f.Options) > MaxOptions {
				break
			}
		}
	}
	switch {
	case len(f.Options) > MaxOptions:
		return fmt.Errorf("the field %q of the server's form has more than %d options", cut(f.Name), MaxOptions)
	case len(f.Options) > 0 && f.Kind == Text:
		f.Kind, f.min, f.max = Choice, bound{}, bound{}
	case len(f.Options) == 0 && f.Kind == Choices:
		return fmt.Errorf("a form cannot show the field %q: a list without options", cut(f.Name))
	}
	return nil
}

func (f *Field) parseDefault(v []byte) {
	switch rawjson.KindOf(v) {
	case rawjson.String:
		s, _ := rawjson.Name(v)
		f.Default = []string{s}
	case rawjson.Number:
		f.Default = []string{string(v)}
	case rawjson.True, rawjson.False:
		f.Default = []string{string(v)}
	case rawjson.Array:
		f.parseDefaults(v)
	}
}

// parseDefaults keeps those options that a list names, each once: a list may be as long
// as a message.
func (f *Field) parseDefaults(list []byte) {
	if f.Kind != Choices {
		f.strayed = true
		return
	}
	f.Default = []string{}
	free := f.offered()
	for item := range rawjson.Elements(list) {
		if s, ok := rawjson.NameBytes(item); ok && free[string(s)] {
			delete(free, string(s))
			f.Default = append(f.Default, string(s))
		} else {
			f.strayed = true
		}
	}
}

// offered has the values of all options.
func (f *Field) offered() map[string]bool {
	values := make(map[string]bool, len(f.Options))
	for _, o := range f.Options {
		values[o.Value] = true
	}
	return values
}

func limit(p []byte, name string) bound {
	v := rawjson.Get(p, name)
	n, ok := number(string(v))
	return bound{set: ok && rawjson.KindOf(v) == rawjson.Number, value: n, text: string(v)}
}

func text(p []byte, name string) string {
	s, _ := rawjson.Text(rawjson.Get(p, name))
	return cut(s)
}

// shown is what a page shows of a name or value.
func shown(name string) string { return cut(rawjson.Readable(name)) }

// cut shortens a stranger's text to what a page shows of it.
func cut(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxText {
			return s[:i] + "…"
		}
	}
	return s
}
