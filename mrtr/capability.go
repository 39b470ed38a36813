package mrtr

import (
	"fmt"

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
		return fmt.Sprintf("the server's input request %.40q has the unknown method %.40q", req.Key, req.Method)
	}
	if kind.NeedsParams() && rawjson.KindOf(req.Params) != rawjson.Object {
		return fmt.Sprintf("the server's input request %.40q lacks params", req.Key)
	}
	if mode := req.Mode(); kind == mcp.Elicitation && mode != "form" && mode != "url" {
		return fmt.Sprintf("the server's input request %.40q has the unknown elicitation mode %.20q", req.Key, mode)
	}
	return ""
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
