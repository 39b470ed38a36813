package translate

import (
	"strconv"

	"github.com/mcpbridge/bridge/rawjson"
)

// An option is one choice of an enum.
type option struct {
	value []byte // raw JSON string
	title string
}

// A multiSelect is a form field whose answer is an array. 2025-06-18 has
// neither such fields nor such answers, so each option becomes a boolean field
// of its own, and the array is rebuilt from the answers (C.5, C-26). Fields are
// named from the schema alone, so that the way back needs no state.
type multiSelect struct {
	name     string
	schema   []byte
	options  []option
	fields   []string // of the options
	min, max int64    // -1: no bound
	required bool
}

// Bounds of the multi-select fields of one form, beyond which it is not asked: a
// person is shown every option as a field of its own, and each such field repeats
// the name and the description of the one that it stands for.
const (
	maxMultis       = 256     // fields
	maxMultiForm    = 4096    // fields of a form that has such
	maxMultiOptions = 1024    // of all fields together
	maxMultiNames   = 4096    // that are tried for them
	maxMultiText    = 1 << 20 // bytes of names and descriptions, repeated
)

// multiForm has the multi-select fields of a form in the order of the form, and
// the place of each by its name. The zero value is a form without any, which cost
// no memory to find out.
type multiForm struct {
	fields []multiSelect
	byName map[string]int
	large  bool // beyond the bounds: fields has some only, and they have no names
}

// multiSelects finds the multi-select fields of a requested schema.
func multiSelects(schema []byte) (f multiForm) {
	properties := rawjson.Get(schema, "properties")
	options, text := 0, 0
	for name, field := range rawjson.Members(properties) {
		if string(rawjson.Get(field, "type")) != `"array"` {
			continue
		}
		m := multiSelect{name: string(name), schema: field}
		var ok bool
		if m.options, ok = itemOptions(rawjson.Get(field, "items")); !ok {
			continue
		}
		m.min, m.max = bound(field, "minItems"), bound(field, "maxItems")
		f.fields = append(f.fields, m)
		options += len(m.options)
		text += len(m.options) * (2*len(name) + len(rawjson.Get(field, "title")) + len(rawjson.Get(field, "description")))
		if len(f.fields) > maxMultis || options > maxMultiOptions || text > maxMultiText {
			f.large = true
			return f
		}
	}
	if len(f.fields) > 0 {
		f.index()
		f.large = !f.nameFields(properties)
		f.markRequired(rawjson.Get(schema, "required"))
	}
	return f
}

// index notes where each field is found by its name.
func (f *multiForm) index() {
	f.byName = make(map[string]int, len(f.fields))
	for i := range f.fields {
		f.byName[f.fields[i].name] = i
	}
}

func bound(field []byte, name string) int64 {
	if n, ok := rawjson.Int(rawjson.Get(field, name)); ok {
		return n
	}
	return -1
}

// itemOptions reads the options of a multi-select. SEP-1330's text had
// items.oneOf where the schema has items.anyOf; both are understood. Of more
// options than a form may have it reads only so many that they are too many.
func itemOptions(items []byte) ([]option, bool) {
	if enum := rawjson.Get(items, "enum"); rawjson.KindOf(enum) == rawjson.Array {
		var options []option
		for value := range rawjson.Elements(enum) {
			text, ok := rawjson.Name(value)
			if !ok {
				return nil, false
			}
			if options = append(options, option{value, text}); len(options) > maxMultiOptions {
				break
			}
		}
		return options, true
	}
	if options, ok := titledOptions(rawjson.Get(items, "anyOf"), maxMultiOptions); ok {
		return options, true
	}
	return titledOptions(rawjson.Get(items, "oneOf"), maxMultiOptions)
}

// titledOptions reads an array of {const, title}, and no further than to the first
// that is more than most. A missing title is the value itself.
func titledOptions(list []byte, most int) ([]option, bool) {
	if rawjson.KindOf(list) != rawjson.Array {
		return nil, false
	}
	var options []option
	for entry := range rawjson.Elements(list) {
		value := rawjson.Get(entry, "const")
		text, ok := rawjson.Name(value)
		if !ok {
			return nil, false
		}
		if title, ok := rawjson.Name(rawjson.Get(entry, "title")); ok {
			text = title
		}
		if options = append(options, option{value, text}); len(options) > most {
			break
		}
	}
	return options, true
}

// nameFields gives every option the name <field>__<n>, with more underscores
// where that name is taken. It reports false when too many were, or the form is too large.
func (f *multiForm) nameFields(properties []byte) bool {
	taken := map[string]bool{}
	for name := range rawjson.Members(properties) {
		if taken[string(name)] = true; len(taken) > maxMultiForm {
			return false
		}
	}
	tried := 0
	for i := range f.fields {
		m := &f.fields[i]
		for n := range m.options {
			prefix := m.name + "__"
			for taken[prefix+strconv.Itoa(n+1)] {
				if tried++; tried > maxMultiNames {
					return false
				}
				prefix += "_"
			}
			field := prefix + strconv.Itoa(n+1)
			taken[field] = true
			m.fields = append(m.fields, field)
		}
	}
	return true
}

func (f *multiForm) markRequired(required []byte) {
	for value := range rawjson.Elements(required) {
		if name, ok := rawjson.NameBytes(value); ok {
			if m := f.find(name); m != nil {
				m.required = true
			}
		}
	}
}

// find returns the multi-select field of a name, nil when there is none. Its cost
// does not depend on how many there are.
func (f *multiForm) find(name []byte) *multiSelect {
	if i, ok := f.byName[string(name)]; ok {
		return &f.fields[i]
	}
	return nil
}

// expand returns the boolean fields that stand for m, as members.
func (m *multiSelect) expand() string {
	chosen, hasDefault := m.defaults()
	description := m.description()
	var b []byte
	for n, o := range m.options {
		b = append(rawjson.AppendQuote(comma(b, n), m.fields[n]), `:{"type":"boolean","title":`...)
		b = append(rawjson.AppendQuote(b, o.title), `,"description":`...)
		b = rawjson.AppendQuote(b, description)
		if hasDefault {
			value, _ := rawjson.NameBytes(o.value)
			b = strconv.AppendBool(append(b, `,"default":`...), chosen[string(value)])
		}
		b = append(b, '}')
	}
	return string(b)
}

// defaults returns the options that are chosen by default.
func (m *multiSelect) defaults() (chosen map[string]bool, ok bool) {
	list := rawjson.Get(m.schema, "default")
	if rawjson.KindOf(list) != rawjson.Array {
		return nil, false
	}
	offered := make(map[string]bool, len(m.options))
	for _, o := range m.options {
		value, _ := rawjson.Name(o.value)
		offered[value] = true
	}
	chosen = map[string]bool{}
	for item := range rawjson.Elements(list) {
		if value, ok := rawjson.NameBytes(item); ok && offered[string(value)] {
			chosen[string(value)] = true
		}
	}
	return chosen, true
}

// description tells the user what the boolean belongs to and how many to pick.
func (m *multiSelect) description() string {
	label := textOf(m.schema, "title")
	if label == "" {
		label = m.name
	}
	text := label + ": choose " + m.bounds() + "."
	if more := textOf(m.schema, "description"); more != "" {
		text += " " + more
	}
	return text
}

func (m *multiSelect) bounds() string {
	low, high := strconv.FormatInt(m.min, 10), strconv.FormatInt(m.max, 10)
	switch {
	case m.min > 0 && m.max >= 0 && m.min == m.max:
		return "exactly " + low
	case m.min > 0 && m.max >= 0:
		return "between " + low + " and " + high
	case m.min > 0:
		return "at least " + low
	case m.max >= 0:
		return "at most " + high
	}
	return "any number"
}

// collapse rebuilds the array from the user's booleans, in option order. present
// is false when the field can be left out of the answer.
func (m *multiSelect) collapse(answers map[string]bool) (array []byte, present bool, err error) {
	array = append(array, '[')
	var count int64
	for n, o := range m.options {
		chosen, answered := answers[m.fields[n]]
		present = present || answered
		if chosen {
			array = append(comma(array, int(count)), o.value...)
			count++
		}
	}
	array = append(array, ']')
	if count == 0 && !m.required && (!present || m.min > 0) {
		return nil, false, nil // an optional field that the user left alone
	}
	if m.min > count || m.max >= 0 && m.max < count {
		return nil, false, &BadAnswer{Reason: "the number of chosen options is out of bounds", AskAgain: true}
	}
	return array, true, nil
}
