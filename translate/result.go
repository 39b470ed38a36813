package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Result brings a complete result of method down to the client's revision (B.5
// to B.8). What the result's type is was decided before (B-27); whatever else it
// carries of an interim result is removed (B-31). Results of methods that the
// protocol does not define only lose the members of P-4. The error is a
// *Malformed, or that of r.Held.
func (r Rules) Result(method string, result []byte) ([]byte, error) {
	w := newWalker(&r, method, result)
	defer w.release()
	if w.result(); w.err != nil {
		return nil, w.err
	}
	return w.bytes()
}

// AppendResult appends to dst what Result would return. It saves the copy for
// callers that frame the result themselves. On an error dst comes back as it
// was. dst must not overlap result.
func (r Rules) AppendResult(dst []byte, method string, result []byte) ([]byte, error) {
	w := newWalker(&r, method, result)
	defer w.release()
	if w.result(); w.err != nil {
		return dst, w.err
	}
	return w.appendTo(dst)
}

// payload returns the member that a result of method must have, and its kind
// (B-30). The name is empty for methods without one.
func payload(method string) (name string, kind rawjson.Kind) {
	switch method {
	case mcp.MethodToolsCall:
		return "content", rawjson.Array
	case mcp.MethodToolsList:
		return "tools", rawjson.Array
	case mcp.MethodPromptsList:
		return "prompts", rawjson.Array
	case mcp.MethodPromptsGet:
		return "messages", rawjson.Array
	case mcp.MethodResourcesList:
		return "resources", rawjson.Array
	case mcp.MethodResourcesTemplatesList:
		return "resourceTemplates", rawjson.Array
	case mcp.MethodResourcesRead:
		return "contents", rawjson.Array
	case mcp.MethodComplete:
		return "completion", rawjson.Object
	}
	return "", rawjson.Invalid
}

func (w *walker) result() {
	if rawjson.KindOf(w.src) != rawjson.Object {
		w.fail("not an object")
		return
	}
	name, kind := payload(w.method)
	o := enterObject(w.src, skipSpace(w.src, 0))
	out := output{}
	for o.next() {
		switch key := string(o.key); {
		case modernMember(key): // B-28, B-31, P-4
			w.drop(o.done())
		case key == "_meta":
			w.meta(&o)
		case key == name && name != "":
			if o.kind() != kind {
				w.fail(name + " has the wrong type")
				return
			}
			o.m.end = w.payload(o.m.val)
			out.content = o.m
		case key == "structuredContent" && w.method == mcp.MethodToolsCall:
			out.structured = o.done()
		}
	}
	missing := name != "" && out.content.end == 0
	if missing && out.structured.end == 0 {
		w.fail(name + " is missing")
		return
	}
	if w.method == mcp.MethodToolsCall {
		w.output(&o, 0, &out)
	}
	if o.count > 0 && o.count == len(w.drops) && !missing { // an empty result is exactly {}
		w.edits = w.edits[:0]
		w.put(0, len(w.src), "{}")
		return
	}
	w.prune(0)
}

// payload enters the payload of a result and returns its end.
func (w *walker) payload(at int) (end int) {
	switch w.method {
	case mcp.MethodToolsCall:
		return w.blocks(at)
	case mcp.MethodToolsList:
		return w.list(at, (*walker).tool)
	case mcp.MethodPromptsList:
		return w.list(at, (*walker).prompt)
	case mcp.MethodResourcesList:
		return w.list(at, (*walker).resource)
	case mcp.MethodResourcesTemplatesList:
		return w.list(at, (*walker).template)
	case mcp.MethodPromptsGet:
		return w.messages(at)
	case mcp.MethodResourcesRead:
		return w.contents(at)
	}
	return rawjson.End(w.src, at)
}

// modernMember reports whether a result's member must never reach a legacy
// client (P-4).
func modernMember(key string) bool {
	switch key {
	case "resultType", "inputRequests", "requestState", "ttlMs", "cacheScope":
		return true
	}
	return false
}

func (w *walker) fail(reason string) {
	if w.err == nil {
		w.err = &Malformed{w.method, reason}
	}
}
