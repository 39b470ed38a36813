package translate

import (
	"unicode/utf8"

	"github.com/mcpbridge/bridge/rawjson"
)

// An entryWalker enters one list entry, an object, and returns its end and why
// a client could not use it; an empty reason means it can.
type entryWalker func(w *walker, at int) (end int, fault string)

// list enters the array of a list result and returns its end. An entry that
// would make a client refuse the whole list is left out and reported.
func (w *walker) list(at int, entry entryWalker) (end int) {
	mark := len(w.drops)
	a := enterArray(w.src, at)
	for a.next() {
		edits, drops := len(w.edits), len(w.drops)
		fault := "not an object"
		if a.kind() == rawjson.Object {
			a.m.end, fault = entry(w, a.m.val)
		}
		if fault == "" {
			continue
		}
		m := a.done()
		w.edits, w.drops = w.edits[:edits], w.drops[:drops]
		w.drop(m)
		w.omitted(w.src[m.val:m.end], fault)
	}
	w.prune(mark)
	return a.end
}

func (w *walker) omitted(entry []byte, reason string) {
	w.rules.lost(lostTool)
	if w.rules.Report == nil {
		return
	}
	name, _ := rawjson.Text(rawjson.Get(entry, "name"))
	if len(name) > 64 {
		name = name[:64]
		for !utf8.ValidString(name) {
			name = name[:len(name)-1]
		}
	}
	w.rules.Report(Omission{Method: w.method, Name: name, Reason: reason})
}

func (w *walker) prompt(at int) (end int, fault string) { return w.entry(at, "name", "name") }

func (w *walker) resource(at int) (end int, fault string) { return w.entry(at, "name", "uri") }

func (w *walker) template(at int) (end int, fault string) { return w.entry(at, "name", "uriTemplate") }

// entry enters a prompt, resource or resource template, which must have two
// string members (they may be the same one).
func (w *walker) entry(at int, first, second string) (end int, fault string) {
	mark, found := len(w.drops), 0
	o := enterObject(w.src, at)
	for o.next() {
		switch key := string(o.key); key {
		case first, second:
			if o.kind() == rawjson.String {
				found++
			}
		case "title":
			w.dropIf(&o, w.cut.title, rawjson.String)
		case "icons":
			w.dropIf(&o, w.cut.icons, rawjson.Array)
		case "_meta":
			w.dropIf(&o, w.cut.meta, rawjson.Object)
		case "description":
			w.dropIf(&o, false, rawjson.String)
		case "annotations":
			w.annotations(&o)
		case "arguments":
			if o.kind() == rawjson.Array {
				o.m.end = w.arguments(o.m.val)
			}
		}
	}
	w.prune(mark)
	if found == 0 || first != second && found < 2 {
		return o.end, "a required member is missing"
	}
	return o.end, ""
}

// dropIf drops the current optional member of o when the revision does not have
// it, or when it has the wrong kind, which would spoil the whole list.
func (w *walker) dropIf(o *object, cut bool, kind rawjson.Kind) {
	if cut || o.kind() != kind {
		w.drop(o.done())
	}
}

// arguments enters the arguments of a prompt.
func (w *walker) arguments(at int) (end int) {
	a := enterArray(w.src, at)
	for a.next() {
		if w.cut.title && a.kind() == rawjson.Object {
			a.m.end = w.without(a.m.val, "title")
		}
	}
	return a.end
}
