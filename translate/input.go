package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Unexpressible says why an input request cannot be put to this client. Its
// round is aborted before any part of it is sent (C-33, C-34), unless Answer
// is set.
type Unexpressible struct {
	Key    string // of the input request; for the caller to fill in
	Reason string // for a person and a model; holds nothing of the payload
	Answer []byte // input response to give without asking the client; usually nil
	Older  bool   // only the client's revision is too old for it: the server did no wrong
}

// Error returns the reason.
func (e *Unexpressible) Error() string { return e.Reason }

// BadAnswer says why a client's answer is of no use to the server. It counts as
// if the client had answered with an error (C.9).
type BadAnswer struct {
	Reason   string // holds nothing of the answer
	AskAgain bool   // the answer breaks a rule that the question could not express: ask once more
}

// Error returns the reason.
func (e *BadAnswer) Error() string { return e.Reason }

// InputRequest turns one entry of a round's input requests into the params of
// the server request that the client gets (C.4 to C.8); nil means no params.
// caps are the capabilities that were declared upstream, as JSON. Whether the
// entry's kind was declared at all is checked by the round parser; here counts
// whether the revision has words for it. A URL question still needs an
// elicitationId, which has an owner and a life of its own (C-27). The error is
// an *Unexpressible.
func (r Rules) InputRequest(method string, params []byte, caps []byte) ([]byte, error) {
	kind, known := mcp.InputKindOf(method)
	switch {
	case !known:
		return nil, &Unexpressible{Reason: "the upstream server asked for the unknown input " + bounded(method)}
	case kind.NeedsParams() && rawjson.KindOf(params) != rawjson.Object:
		return nil, &Unexpressible{Reason: "the upstream server's input request " + bounded(method) + " lacks params"}
	}
	return questions[kind].request(r, params, caps)
}

// InputResponse turns the client's result of such a server request into the
// bare value under the entry's key in inputResponses (C.9). params are those
// of the upstream's entry, not of the server request. The error is a
// *BadAnswer.
func (r Rules) InputResponse(method string, params, result []byte) ([]byte, error) {
	if rawjson.KindOf(result) != rawjson.Object {
		return nil, &BadAnswer{Reason: "it is no object"}
	}
	kind, known := mcp.InputKindOf(method)
	if !known {
		return nil, &BadAnswer{Reason: "it answers an unknown input request"}
	}
	return questions[kind].answer(r, params, result)
}

// rootsAnswer keeps the roots alone; the modern result has no _meta (C.8).
func rootsAnswer(result []byte) ([]byte, error) {
	roots := rawjson.Get(result, "roots")
	if rawjson.KindOf(roots) != rawjson.Array {
		return nil, &BadAnswer{Reason: "roots is no array"}
	}
	out := append(make([]byte, 0, len(roots)+10), `{"roots":`...)
	return append(append(out, roots...), '}'), nil
}

// samplingAnswer passes the model's message on (C.7).
func samplingAnswer(result []byte) ([]byte, error) {
	content := rawjson.KindOf(rawjson.Get(result, "content"))
	if content != rawjson.Object && content != rawjson.Array {
		return nil, &BadAnswer{Reason: "content is missing"}
	}
	for _, name := range [...]string{"role", "model"} {
		if rawjson.KindOf(rawjson.Get(result, name)) != rawjson.String {
			return nil, &BadAnswer{Reason: name + " is missing"}
		}
	}
	w := newWalker(&Rules{}, mcp.MethodSamplingCreateMessage, result)
	defer w.release()
	o := enterObject(result, skipSpace(result, 0))
	for o.next() {
		switch string(o.key) {
		case "_meta":
			w.meta(&o)
		case "resultType", "method", "jsonrpc": // bare results only
			w.drop(o.done())
		}
	}
	w.prune(0)
	return w.bytes()
}

// bounded shortens peer-controlled text for an error message.
func bounded(s string) string {
	const limit = 60
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
