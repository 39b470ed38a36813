package mrtr

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// check reports why req may not be put to a client that declared caps: an
// unknown method, missing params or an undeclared capability (C-33). Nil means
// that it may.
func (req *InputRequest) check(caps []byte) *Abort {
	reason, undeclared := req.fault(), ""
	if reason == "" {
		undeclared = req.Missing(caps)
	}
	if undeclared != "" {
		reason = "the server asked for " + undeclared + ", which was not declared"
	}
	if reason == "" {
		return nil
	}
	return &Abort{Key: req.Key, Method: req.Method, Reason: reason, Undeclared: undeclared, Rule: "C-33"}
}

// fault returns what is wrong with the request, whoever gets it.
func (req *InputRequest) fault() string {
	kind := req.Kind()
	if kind == mcp.InputKinds {
		return "the server's input request" + token(req.Key) + " has an unknown method" + token(req.Method)
	}
	if kind.NeedsParams() && rawjson.KindOf(req.Params) != rawjson.Object {
		return "the server's input request" + token(req.Key) + " lacks params"
	}
	if mode := req.Mode(); kind == mcp.Elicitation && mode != "form" && mode != "url" {
		return "the server's input request" + token(req.Key) + " has an unknown elicitation mode" + token(mode)
	}
	return ""
}

// maxToken bounds what of the server's words stands in the bridge's own, in bytes.
const maxToken = 40

// token returns a word of the server's in quotes, after a space, to be part of a line that is logged; "" when it is none that a
// program would have: it may say anything then.
func token(word string) string {
	if word == "" || len(word) > maxToken {
		return ""
	}
	for _, c := range []byte(word) {
		if !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '_' || c == '/' || c == '.' || c == '-') {
			return ""
		}
	}
	return ` "` + word + `"`
}

// Missing returns the capability that the request needs and caps, as JSON, lacks, or "".
func (req *InputRequest) Missing(caps []byte) string {
	kind := req.Kind()
	if kind == mcp.InputKinds {
		return req.Method // nobody can have declared it
	}
	declared := rawjson.Get(caps, kind.Capability())
	switch {
	case declared == nil:
		return kind.Capability()
	case kind == mcp.Elicitation:
		return missingMode(req.Mode(), declared)
	case kind == mcp.Sampling:
		return missingTools(req.Params, declared)
	}
	return ""
}

func missingMode(mode string, declared []byte) string {
	switch {
	case mode == "form" && !rawjson.Has(declared, "form") && rawjson.Has(declared, "url"):
		return "elicitation.form"
	case mode == "url" && !rawjson.Has(declared, "url"):
		return "elicitation.url"
	}
	return ""
}

func missingTools(params, declared []byte) string {
	if usesTools := rawjson.Has(params, "tools") || rawjson.Has(params, "toolChoice"); usesTools && !rawjson.Has(declared, "tools") {
		return "sampling.tools"
	}
	return ""
}

// Kind returns what is asked for; mcp.InputKinds stands for a method that is no kind.
func (req *InputRequest) Kind() mcp.InputKind {
	kind, _ := mcp.InputKindOf(req.Method)
	return kind
}

// Mode returns an elicitation's mode; a missing one means form (C.4).
func (req *InputRequest) Mode() string {
	raw := rawjson.Get(req.Params, "mode")
	switch string(raw) {
	case "", `"form"`:
		return "form"
	case `"url"`:
		return "url"
	}
	mode, _ := rawjson.Text(raw)
	return mode
}
