package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// elicitation brings a question to the user down (C.4 to C.6).
func (r Rules) elicitation(params []byte) ([]byte, error) {
	if !r.Version.AtLeast(mcp.V20250618) { // J-6
		return nil, &Unexpressible{Reason: "the upstream server wants to ask the user something (elicitation), " +
			"which the client's protocol version " + string(r.Version) + " does not have"}
	}
	if rawjson.KindOf(rawjson.Get(params, "message")) != rawjson.String {
		return nil, &Unexpressible{Reason: "the upstream server's elicitation has no message"}
	}
	w := newWalker(&r, mcp.MethodElicitationCreate, params)
	defer w.release()
	var err *Unexpressible
	switch elicitationMode(params) {
	case "form":
		err = w.form(params)
	case "url":
		err = w.urlQuestion(params)
	default:
		err = &Unexpressible{Reason: "the upstream server's elicitation has an unknown mode"}
	}
	if err != nil {
		return nil, err
	}
	return w.bytes()
}

// elicitationMode returns an elicitation's mode; a missing one means form.
func elicitationMode(params []byte) string {
	raw := rawjson.Get(params, "mode")
	if raw == nil {
		return "form"
	}
	mode, _ := rawjson.Text(raw)
	return mode
}

// form enters the params of a form question. 2025-06-18 knows no other mode, so
// it has no mode member.
func (w *walker) form(params []byte) *Unexpressible {
	schema := rawjson.Get(params, "requestedSchema")
	if rawjson.KindOf(schema) != rawjson.Object {
		return &Unexpressible{Reason: "the upstream server's elicitation has no requestedSchema"}
	}
	var multis multiForm
	if w.oldForms() {
		multis = multiSelects(schema)
	}
	if len(multis.fields) > 0 {
		if w.rules.CancelMultiSelect { // Q12
			return &Unexpressible{
				Reason: "the client's protocol version 2025-06-18 has no multi-select questions",
				Answer: []byte(cancelAnswer),
			}
		}
		if multis.large {
			return &Unexpressible{Reason: "the upstream server's elicitation has more multi-select options " +
				"than a client of 2025-06-18 can be asked"}
		}
		w.rules.lost(lostMulti)
	}
	o := enterObject(w.src, skipSpace(w.src, 0))
	for o.next() {
		switch string(o.key) {
		case "mode":
			if w.oldForms() {
				w.drop(o.done())
			}
		case "requestedSchema":
			o.m.end = w.requestedSchema(o.m.val, &multis)
		case "_meta", "task": // neither is part of an input request
			w.drop(o.done())
		}
	}
	w.prune(0)
	return nil
}

// urlQuestion enters the params of a question that sends the user to a page. A
// client without URL mode is never shown the address in a form (J-6).
func (w *walker) urlQuestion(params []byte) *Unexpressible {
	if w.oldForms() {
		return &Unexpressible{Reason: "the upstream server wants to send the user to a web page (URL elicitation), " +
			"which the client's protocol version " + string(w.rules.Version) + " does not have"}
	}
	if rawjson.KindOf(rawjson.Get(params, "url")) != rawjson.String {
		return &Unexpressible{Reason: "the upstream server's elicitation has no url"}
	}
	o := enterObject(w.src, skipSpace(w.src, 0))
	for o.next() {
		switch string(o.key) {
		case "_meta", "task":
			w.drop(o.done())
		}
	}
	w.prune(0)
	return nil
}

// oldForms reports whether forms are those of 2025-06-18: single selects only,
// titles in enumNames.
func (w *walker) oldForms() bool { return !w.rules.Version.AtLeast(mcp.V20251125) }

// requestedSchema enters a form's schema and returns its end (C.5).
func (w *walker) requestedSchema(at int, multis *multiForm) (end int) {
	mark := len(w.drops)
	o := enterObject(w.src, at)
	for o.next() {
		switch string(o.key) {
		case "$schema":
			if w.oldForms() {
				w.drop(o.done())
			}
		case "properties":
			if o.kind() == rawjson.Object {
				o.m.end = w.formFields(o.m.val, multis)
			}
		case "required":
			if len(multis.fields) > 0 && o.kind() == rawjson.Array {
				o.m.end = w.requiredFields(o.m.val, multis)
			}
		}
	}
	w.prune(mark)
	return o.end
}

func (w *walker) formFields(at int, multis *multiForm) (end int) {
	mark := len(w.drops)
	o := enterObject(w.src, at)
	for o.next() {
		if o.kind() != rawjson.Object {
			continue
		}
		if m := multis.find(o.key); m != nil {
			field := o.done()
			if text := m.expand(); text == "" {
				w.drop(field)
			} else {
				w.put(field.start, field.end, text)
			}
			continue
		}
		w.formField(&o)
	}
	w.prune(mark)
	return o.end
}

// formField rewrites the enum variant of the current field where the revision
// has another form for it.
func (w *walker) formField(o *object) {
	field := o.value()
	switch string(rawjson.Get(field, "type")) {
	case `"string"`:
		if w.oldForms() && !rawjson.Has(field, "enum") && !rawjson.Has(field, "enumNames") {
			w.titledEnum(o.m.val)
		}
	case `"array"`: // SEP-1330 spelt items.anyOf as oneOf (C-26)
		items := enterObject(w.src, o.m.val)
		for items.next() {
			if string(items.key) == "items" && !rawjson.Has(items.value(), "anyOf") && items.kind() == rawjson.Object {
				items.m.end = w.renameOneOf(items.m.val)
			}
		}
	}
}

// titledEnum turns oneOf:[{const,title}] into enum and enumNames.
func (w *walker) titledEnum(at int) {
	o := enterObject(w.src, at)
	for o.next() {
		if key := string(o.key); key != "oneOf" && key != "anyOf" {
			continue
		}
		list := o.value()
		if !titled(list) {
			continue
		}
		w.rules.lost(lostTitles)
		if m, from := o.done(), len(w.text); w.needs(2*len(list) + 32) { // without titles each value stands there twice
			w.text = appendEnum(w.text, list)
			w.putText(m.start, m.end, from)
		}
		return
	}
}

// titled reports whether a list is one of options as titledOptions reads them.
func titled(list []byte) bool {
	if rawjson.KindOf(list) != rawjson.Array {
		return false
	}
	for entry := range rawjson.Elements(list) {
		if rawjson.KindOf(rawjson.Get(entry, "const")) != rawjson.String {
			return false
		}
	}
	return true
}

// appendEnum appends the members that have the values of titled options, and their titles.
func appendEnum(dst, list []byte) []byte {
	dst = append(dst, `"enum":[`...)
	n := 0
	for entry := range rawjson.Elements(list) {
		dst = append(comma(dst, n), rawjson.Get(entry, "const")...)
		n++
	}
	dst = append(dst, `],"enumNames":[`...)
	n = 0
	for entry := range rawjson.Elements(list) {
		title := rawjson.Get(entry, "title")
		if rawjson.KindOf(title) != rawjson.String {
			title = rawjson.Get(entry, "const")
		}
		dst = append(comma(dst, n), title...)
		n++
	}
	return append(dst, ']')
}

func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

func (w *walker) renameOneOf(at int) (end int) {
	o := enterObject(w.src, at)
	for o.next() {
		if string(o.key) == "oneOf" {
			w.put(o.m.start, rawjson.End(w.src, o.m.start), `"anyOf"`)
		}
	}
	return o.end
}

// requiredFields removes expanded fields from the array of required ones.
func (w *walker) requiredFields(at int, multis *multiForm) (end int) {
	mark := len(w.drops)
	a := enterArray(w.src, at)
	for a.next() {
		m := a.done()
		if name, ok := rawjson.NameBytes(w.src[m.val:m.end]); ok && multis.find(name) != nil {
			w.drop(m)
		}
	}
	w.prune(mark)
	return a.end
}
