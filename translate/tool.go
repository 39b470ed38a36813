package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// toolParts are the places of those members of a tool that later ones decide
// about. A zero end means absent.
type toolParts struct {
	name, title, annotations, input bool
	titleAt, annotationsAt          member
}

// tool enters a tool definition (B.6).
func (w *walker) tool(at int) (end int, fault string) {
	mark := len(w.drops)
	var parts toolParts
	o := enterObject(w.src, at)
	for o.next() {
		if reason := w.toolMember(&o, &parts); reason != "" && fault == "" {
			fault = reason
		}
	}
	switch {
	case fault != "":
		return o.end, fault
	case !parts.name:
		return o.end, "name is missing"
	case !parts.input:
		return o.end, "inputSchema is missing"
	}
	if w.rules.RejectTool != nil {
		if fault = w.rules.RejectTool(w.src[at:o.end]); fault != "" {
			return o.end, fault
		}
	}
	if parts.title && w.cut.moveTitle {
		w.moveTitle(&parts)
	}
	if w.rules.HostTasks && w.rules.Version.AtLeast(mcp.V20251125) { // G.3
		w.add(&o, mark, `"execution":{"taskSupport":"optional"}`)
	}
	w.prune(mark)
	return o.end, ""
}

// toolMember deals with the current member of a tool and returns a fault that
// makes the tool unusable.
func (w *walker) toolMember(o *object, parts *toolParts) (fault string) {
	switch string(o.key) {
	case "name":
		parts.name = o.kind() == rawjson.String
	case "description":
		w.dropIf(o, false, rawjson.String)
	case "title":
		if o.kind() == rawjson.String && w.cut.moveTitle {
			parts.title, parts.titleAt = true, o.done()
		} else {
			w.dropIf(o, w.cut.title, rawjson.String)
		}
	case "annotations":
		if o.kind() == rawjson.Object {
			parts.annotations, parts.annotationsAt = true, o.done()
		}
		w.dropIf(o, w.cut.annotations, rawjson.Object)
	case "icons":
		w.dropIf(o, w.cut.icons, rawjson.Array)
	case "_meta":
		w.dropIf(o, w.cut.meta, rawjson.Object)
	case "execution": // says how to call with a task, which only the bridge may promise
		w.drop(o.done())
	case "inputSchema":
		parts.input = true
		return w.inputSchema(o)
	case "outputSchema":
		w.outputSchema(o)
	}
	return ""
}

// moveTitle puts a tool's title where 2025-03-26 has it: into the annotations,
// unless they carry one of their own.
func (w *walker) moveTitle(parts *toolParts) {
	title := string(w.src[parts.titleAt.start:parts.titleAt.end])
	if !parts.annotations {
		w.put(parts.titleAt.start, parts.titleAt.end, `"annotations":{`+title+`}`)
		return
	}
	w.drop(parts.titleAt)
	annotations := enterObject(w.src, parts.annotationsAt.val)
	for annotations.next() {
		if string(annotations.key) == "title" {
			return
		}
	}
	w.add(&annotations, len(w.drops), title)
}

// inputSchema enters a tool's input schema. Arguments are always an object, so
// a schema that does not say so can be told to; one that says otherwise cannot
// be used.
func (w *walker) inputSchema(o *object) (fault string) {
	if o.kind() != rawjson.Object {
		return "inputSchema is no object"
	}
	mark := len(w.drops)
	s := w.schema(o.m.val, true)
	w.prune(mark)
	o.m.end, w.refs = s.end, w.refs[:0]
	switch {
	case !s.sound:
		return "inputSchema is malformed"
	case s.object:
	case s.typed:
		return "inputSchema does not describe an object"
	case s.kept == 0:
		w.put(o.m.val+1, o.m.val+1, `"type":"object"`)
	default:
		w.put(o.m.val+1, o.m.val+1, `"type":"object",`)
	}
	return ""
}

// outputSchema enters a tool's output schema. Legacy revisions want an object
// at the root: any other schema is wrapped, or dropped when it cannot be (Q10).
func (w *walker) outputSchema(o *object) {
	if w.cut.output || o.kind() != rawjson.Object {
		w.rules.lost(lostSchema)
		w.drop(o.done())
		return
	}
	if !w.rules.hasStructured() { // minimal profile: unknown to the revision, any value will do
		return
	}
	mark := len(w.drops)
	s := w.schema(o.m.val, true)
	o.m.end = s.end
	if s.wrapped() && !w.rules.DropNonObject {
		w.rules.lost(wrappedSchema)
		w.wrapSchema(o.m, &s)
	}
	w.prune(mark)
	if !s.sound || !s.object && (w.rules.DropNonObject || s.unwrappable) {
		w.drop(o.m)
	}
	w.refs = w.refs[:0]
}

// Wraps reports whether the client is given the output schema of a tool, as the upstream listed it, wrapped as
// {"result": …}. Calls of such a tool need Rules.WrapOutput.
func (r Rules) Wraps(tool []byte) bool {
	outputSchema := rawjson.Get(tool, "outputSchema")
	if !r.hasStructured() || r.DropNonObject || rawjson.KindOf(outputSchema) != rawjson.Object {
		return false
	}
	w := newWalker(&r, mcp.MethodToolsList, outputSchema)
	defer w.release()
	s := w.schema(skipSpace(outputSchema, 0), true)
	return s.wrapped()
}
