package mrtr

import (
	"fmt"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// check reports why req may not be put to a client that declared caps: an
// unknown method, missing params or an undeclared capability (C-33). Empty
// means it may.
func (req *InputRequest) check(caps []byte) string {
	if req.Method != mcp.MethodRootsList && rawjson.KindOf(req.Params) != rawjson.Object {
		return fmt.Sprintf("the server's input request %.40q lacks params", req.Key)
	}
	switch req.Method {
	case mcp.MethodElicitationCreate:
		return checkElicitation(req, rawjson.Get(caps, "elicitation"))
	case mcp.MethodSamplingCreateMessage:
		return checkSampling(req, rawjson.Get(caps, "sampling"))
	case mcp.MethodRootsList:
		if !rawjson.Has(caps, "roots") {
			return undeclared("roots")
		}
		return ""
	}
	return fmt.Sprintf("the server's input request %.40q has the unknown method %.40q", req.Key, req.Method)
}

func checkElicitation(req *InputRequest, declared []byte) string {
	if declared == nil {
		return undeclared("elicitation")
	}
	mode := req.Mode()
	switch {
	case mode != "form" && mode != "url":
		return fmt.Sprintf("the server's input request %.40q has the unknown elicitation mode %.20q", req.Key, mode)
	case mode == "form" && !rawjson.Has(declared, "form") && rawjson.Has(declared, "url"):
		return undeclared("elicitation.form")
	case mode == "url" && !rawjson.Has(declared, "url"):
		return undeclared("elicitation.url")
	}
	return ""
}

func checkSampling(req *InputRequest, declared []byte) string {
	if declared == nil {
		return undeclared("sampling")
	}
	usesTools := rawjson.Has(req.Params, "tools") || rawjson.Has(req.Params, "toolChoice")
	if usesTools && !rawjson.Has(declared, "tools") {
		return undeclared("sampling.tools")
	}
	return ""
}

func undeclared(capability string) string {
	return "the server asked for " + capability + ", which the client did not declare"
}

// Mode returns an elicitation's mode; a missing one means form (C.4).
func (req *InputRequest) Mode() string {
	raw := rawjson.Get(req.Params, "mode")
	if raw == nil {
		return "form"
	}
	mode, _ := rawjson.Text(raw)
	return mode
}
