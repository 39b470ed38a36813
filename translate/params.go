package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// An Envelope is what the bridge itself puts into one upstream request. All
// byte fields are raw JSON; nil means absent, and absent stays absent (P-7).
type Envelope struct {
	// Method of the request. It decides which members a legacy client has no
	// business sending (B-7); empty means any of the protocol's own methods.
	Method string

	Version       string // of the protocol; empty means 2026-07-28
	ClientInfo    []byte // the client's own, verbatim
	Capabilities  []byte // from ClientCapabilities; nil means {} (A.5)
	ProgressToken []byte // of this round; nil when the client gave none (B-5)
	LogLevel      string // empty: none (B-6)

	InputResponses []byte // this round's answers (D-I6)
	RequestState   []byte // the latest result's raw token, echoed as it is (D-I3)
}

// Params appends to dst the params of the upstream request for a client's
// params (nil: absent) and returns the result. _meta is rebuilt (B-4), members
// that belong to the bridge are replaced (B-5 to B-7, D.4) and everything else
// stays byte for byte (B-8). params are the client's own in every round, so
// that all rounds agree (D-I2).
func Params(dst, params []byte, env *Envelope) []byte {
	if rawjson.KindOf(params) != rawjson.Object { // B-3
		dst = append(dst, '{')
		dst = env.appendRest(env.appendMeta(append(dst, `"_meta":{`...), false))
		return append(dst, '}')
	}
	w := newWalker(&Rules{}, env.Method, params)
	defer w.release()
	w.params(env)
	dst, _ = w.appendTo(dst) // nobody is told, so nothing is refused
	return dst
}

// OwnParams returns the params of a request in the bridge's own name, whose answer
// may serve every client: with the bridge's client info, and no capabilities.
func OwnParams(method string, params []byte) []byte {
	return Params(nil, params, &Envelope{Method: method, ClientInfo: ownInfo})
}

var ownInfo = []byte(`{"name":"mcp-bridge","version":"1"}`)

func (w *walker) params(env *Envelope) {
	o := enterObject(w.src, skipSpace(w.src, 0))
	hasMeta := false
	for o.next() {
		switch string(o.key) {
		case "_meta":
			hasMeta = true
			w.paramsMeta(&o, env)
		case "task":
			if coreMethod(env.Method) {
				w.drop(o.done())
			}
		case "inputResponses", "requestState":
			if env.retries() || env.Method == "" || mcp.MayRequireInput(env.Method) {
				w.drop(o.done())
			}
		case "cursor":
			if o.kind() == rawjson.Null && coreMethod(env.Method) {
				w.drop(o.done())
			}
		}
	}
	from := len(w.text)
	if o.count > len(w.drops) {
		w.text = append(w.text, ',')
	}
	if hasMeta {
		w.text = env.appendRest(w.text[:from]) // something stays: _meta is never dropped
	} else {
		w.text = env.appendRest(env.appendMeta(append(w.text, `"_meta":{`...), false))
	}
	if len(w.text) > from {
		w.putText(o.last, o.last, from)
	}
	w.prune(0)
}

// paramsMeta rebuilds the client's _meta (B-4): its own keys stay where they
// are, the bridge's follow. A _meta that is no object is replaced.
func (w *walker) paramsMeta(o *object, env *Envelope) {
	from := len(w.text)
	if o.kind() != rawjson.Object {
		end := o.done().end
		w.text = env.appendMeta(append(w.text, '{'), false)
		w.putText(o.m.val, end, from)
		return
	}
	mark := len(w.drops)
	m := enterObject(w.src, o.m.val)
	for m.next() {
		if ownedKey(m.key) || string(m.key) == "progressToken" {
			w.drop(m.done())
		}
	}
	o.m.end = m.end
	w.text = env.appendMeta(w.text, m.count > len(w.drops)-mark)
	w.putText(m.last, m.end, from)
	w.prune(mark)
}

// appendMeta appends the bridge's _meta members and the closing brace.
func (env *Envelope) appendMeta(dst []byte, comma bool) []byte {
	if comma {
		dst = append(dst, ',')
	}
	if env.ProgressToken != nil {
		dst = append(append(dst, `"progressToken":`...), env.ProgressToken...)
		dst = append(dst, ',')
	}
	version := env.Version
	if version == "" {
		version = string(mcp.V20260728)
	}
	dst = append(dst, `"`+mcp.MetaProtocolVersion+`":`...)
	dst = rawjson.AppendQuote(dst, version)
	if env.ClientInfo != nil {
		dst = append(append(dst, `,"`+mcp.MetaClientInfo+`":`...), env.ClientInfo...)
	}
	dst = append(dst, `,"`+mcp.MetaClientCapabilities+`":`...)
	if env.Capabilities == nil {
		dst = append(dst, "{}"...)
	}
	dst = append(dst, env.Capabilities...)
	if env.LogLevel != "" {
		dst = append(dst, `,"`+mcp.MetaLogLevel+`":`...)
		dst = rawjson.AppendQuote(dst, env.LogLevel)
	}
	return append(dst, '}')
}

// retries reports whether this round carries something of an earlier one.
func (env *Envelope) retries() bool { return env.InputResponses != nil || env.RequestState != nil }

// appendRest appends what a retry carries besides _meta (D.4).
func (env *Envelope) appendRest(dst []byte) []byte {
	if env.InputResponses != nil {
		dst = append(append(dst, `,"inputResponses":`...), env.InputResponses...)
	}
	if env.RequestState != nil {
		dst = append(append(dst, `,"requestState":`...), env.RequestState...)
	}
	return dst
}

// coreMethod reports whether the protocol defines method. In the params of a
// vendor's method, task and cursor are the vendor's own.
func coreMethod(method string) bool {
	switch method {
	case "", mcp.MethodToolsList, mcp.MethodToolsCall, mcp.MethodPromptsList, mcp.MethodPromptsGet,
		mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead,
		mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe, mcp.MethodComplete:
		return true
	}
	return false
}
