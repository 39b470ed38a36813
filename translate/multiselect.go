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

// multiSelects finds the multi-select fields of a requested schema.
func multiSelects(schema []byte) []multiSelect {
	properties := rawjson.Get(schema, "properties")
	var multis []multiSelect
	for name, field := range rawjson.Members(properties) {
		if string(rawjson.Get(field, "type")) != `"array"` {
			continue
		}
		options, ok := itemOptions(rawjson.Get(field, "items"))
		if !ok {
			continue
		}
		m := multiSelect{name: string(name), schema: field, options: options}
		m.min, m.max = bound(field, "minItems"), bound(field, "maxItems")
		multis = append(multis, m)
	}
	if len(multis) > 0 {
		nameFields(multis, properties)
		markRequired(multis, rawjson.Get(schema, "required"))
	}
	return multis
}

func bound(field []byte, name string) int64 {
	if n, ok := rawjson.Int(rawjson.Get(field, name)); ok {
		return n
	}
	return -1
}

// itemOptions reads the options of a multi-select. SEP-1330's text had
// items.oneOf where the schema has items.anyOf; both are understood.
func itemOptions(items []byte) ([]option, bool) {
	if enum := rawjson.Get(items, "enum"); rawjson.KindOf(enum) == rawjson.Array {
		var options []option
		for value := range rawjson.Elements(enum) {
			text, ok := rawjson.Text(value)
			if !ok {
				return nil, false
			}
			options = append(options, option{value, text})
		}
		return options, true
	}
	if options, ok := titledOptions(rawjson.Get(items, "anyOf")); ok {
		return options, true
	}
	return titledOptions(rawjson.Get(items, "oneOf"))
}

// titledOptions reads an array of {const, title}. A missing title is the value
// itself.
func titledOptions(list []byte) ([]option, bool) {
	if rawjson.KindOf(list) != rawjson.Array {
		return nil, false
	}
	var options []option
	for entry := range rawjson.Elements(list) {
		value := rawjson.Get(entry, "const")
		text, ok := rawjson.Text(value)
		if !ok {
			return nil, false
		}
		if title, ok := rawjson.Text(rawjson.Get(entry, "title")); ok {
			text = title
		}
		options = append(options, option{value, text})
	}
	return options, true
}

// nameFields gives every option the name <field>__<n>, with more underscores
// where that name is taken.
func nameFields(multis []multiSelect, properties []byte) {
	taken := map[string]bool{}
	for name := range rawjson.Members(properties) {
		taken[string(name)] = true
	}
	for i := range multis {
		m := &multis[i]
		for n := range m.options {
			prefix := m.name + "__"
			for taken[prefix+strconv.Itoa(n+1)] {
				prefix += "_"
			}
			field := prefix + strconv.Itoa(n+1)
			taken[field] = true
			m.fields = append(m.fields, field)
		}
	}
}

func markRequired(multis []multiSelect, required []byte) {
	for value := range rawjson.Elements(required) {
		if name, ok := rawjson.Text(value); ok {
			if m := findMulti(multis, name); m != nil {
				m.required = true
			}
		}
	}
}

func findMulti(multis []multiSelect, name string) *multiSelect {
	for i := range multis {
		if multis[i].name == name {
			return &multis[i]
		}
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
			b = strconv.AppendBool(append(b, `,"default":`...), chosen[string(o.value)])
		}
		b = append(b, '}')
	}
	return string(b)
}

// defaults returns the values that are chosen by default, as raw JSON.
func (m *multiSelect) defaults() (chosen map[string]bool, ok bool) {
	list := rawjson.Get(m.schema, "default")
	if rawjson.KindOf(list) != rawjson.Array {
		return nil, false
	}
	chosen = map[string]bool{}
	for value := range rawjson.Elements(list) {
		for _, o := range m.options {
			if rawjson.Equal(o.value, value) {
				chosen[string(o.value)] = true
			}
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
