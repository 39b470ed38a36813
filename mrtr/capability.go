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
	switch req.Method {
	case mcp.MethodRootsList:
		return ""
	case mcp.MethodElicitationCreate, mcp.MethodSamplingCreateMessage:
	default:
		return fmt.Sprintf("the server's input request %.40q has the unknown method %.40q", req.Key, req.Method)
	}
	if rawjson.KindOf(req.Params) != rawjson.Object {
		return fmt.Sprintf("the server's input request %.40q lacks params", req.Key)
	}
	if mode := req.Mode(); req.Method == mcp.MethodElicitationCreate && mode != "form" && mode != "url" {
		return fmt.Sprintf("the server's input request %.40q has the unknown elicitation mode %.20q", req.Key, mode)
	}
	return ""
}

// Missing returns the capability that the request needs and caps, as JSON, lacks, or "".
func (req *InputRequest) Missing(caps []byte) string {
	switch req.Method {
	case mcp.MethodElicitationCreate:
		return missingElicitation(req.Mode(), rawjson.Get(caps, "elicitation"))
	case mcp.MethodSamplingCreateMessage:
		return missingSampling(req.Params, rawjson.Get(caps, "sampling"))
	}
	if !rawjson.Has(caps, "roots") {
		return "roots"
	}
	return ""
}

func missingElicitation(mode string, declared []byte) string {
	switch {
	case declared == nil:
		return "elicitation"
	case mode == "form" && !rawjson.Has(declared, "form") && rawjson.Has(declared, "url"):
		return "elicitation.form"
	case mode == "url" && !rawjson.Has(declared, "url"):
		return "elicitation.url"
	}
	return ""
}

func missingSampling(params, declared []byte) string {
	usesTools := rawjson.Has(params, "tools") || rawjson.Has(params, "toolChoice")
	switch {
	case declared == nil:
		return "sampling"
	case usesTools && !rawjson.Has(declared, "tools"):
		return "sampling.tools"
	}
	return ""
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
