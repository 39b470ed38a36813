package translate

import (
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// metaRequired is the key under which a tool error carries the capabilities
// that the client lacks (F.2).
const metaRequired = "io.github.mcpbridge/requiredCapabilities"

// Error brings an upstream's JSON-RPC error down (F.2). It returns exactly one
// of a result, for errors that are of use to a model as a failed tool call, and
// an error. params are the client's own.
func (r Rules) Error(method string, params []byte, e *jsonrpc.Error) (result []byte, out *jsonrpc.Error) {
	switch e.Code {
	case mcp.CodeMissingCapability:
		return r.missingCapability(method, e)
	case jsonrpc.CodeInvalidParams:
		return nil, invalidParams(method, params, e)
	case jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest:
		return nil, recoded(e, jsonrpc.CodeInternal, "the upstream server could not read the bridge's request: "+e.Message)
	case mcp.CodeHeaderMismatch:
		return nil, recoded(e, jsonrpc.CodeInternal, "the upstream server refused the request's headers: "+e.Message)
	case mcp.CodeUnsupportedVersion:
		return nil, unsupportedVersion(e)
	case mcp.CodeURLElicitation:
		if r.expressesURLError(e) {
			return nil, e
		}
		return nil, recoded(e, jsonrpc.CodeInternal, e.Message)
	}
	if e.Code <= -32020 && e.Code >= -32099 { // undefined ones of the protocol's range
		return nil, recoded(e, jsonrpc.CodeInternal, e.Message)
	}
	return nil, e // F-1, F-3
}

// ToolError returns a tool result that reports a failed call to the model.
func ToolError(text string) []byte { return toolError(text, "", nil) }

func toolError(text, metaKey string, meta []byte) []byte {
	b := rawjson.AppendQuote([]byte(`{"content":[{"type":"text","text":`), text)
	b = append(b, `}],"isError":true`...)
	if meta != nil {
		b = append(rawjson.AppendQuote(append(b, `,"_meta":{`...), metaKey), ':')
		b = append(append(b, meta...), '}')
	}
	return append(b, '}')
}

// recoded returns e under another code and message, with the original code
// under data.bridge (F-1). Data that is no object moves there too.
func recoded(e *jsonrpc.Error, code int, message string) *jsonrpc.Error {
	bridge := append([]byte(`{"upstreamCode":`), strconv.Itoa(e.Code)...)
	data := e.Data
	if data != nil && rawjson.KindOf(data) != rawjson.Object {
		bridge = append(append(bridge, `,"upstreamData":`...), data...)
		data = nil
	}
	bridge = append(bridge, '}')
	return &jsonrpc.Error{
		Code:    code,
		Message: message,
		Data:    rawjson.Apply(nil, data, rawjson.Edit{Name: "bridge", Value: bridge}),
	}
}

// invalidParams tells a missing resource, a defect of the bridge and a mistake
// of the client apart; all three come as -32602.
func invalidParams(method string, params []byte, e *jsonrpc.Error) *jsonrpc.Error {
	uri := rawjson.Get(e.Data, "uri")
	switch {
	case method == mcp.MethodResourcesRead && uri != nil && rawjson.Equal(uri, rawjson.Get(params, "uri")):
		return recoded(e, mcp.CodeResourceNotFound, e.Message) // J-19
	case strings.Contains(e.Message, mcp.MetaPrefix):
		return recoded(e, jsonrpc.CodeInternal, e.Message)
	}
	return e
}

// unsupportedVersion names the upstream's versions in prose only: what stands
// under data.supported, a client takes for what the bridge offers.
func unsupportedVersion(e *jsonrpc.Error) *jsonrpc.Error {
	message := "the upstream server does not speak MCP 2026-07-28"
	if versions := supportedVersions(e.Data); versions != "" {
		message += "; it offers " + versions
	}
	bare := jsonrpc.Error{Code: e.Code, Message: e.Message}
	return recoded(&bare, jsonrpc.CodeInternal, message)
}

// supportedVersions lists at most eight of the versions in data.supported.
func supportedVersions(data []byte) string {
	var names []string
	for v := range rawjson.Elements(rawjson.Get(data, "supported")) {
		if name, ok := rawjson.Text(v); ok && len(names) < 8 {
			names = append(names, bounded(name))
		}
	}
	return strings.Join(names, ", ")
}

// expressesURLError reports whether the client knows -32042 and e is a well
// formed one: 2025-11-25 with URL elicitation declared.
func (r Rules) expressesURLError(e *jsonrpc.Error) bool {
	elicitation := rawjson.Get(r.Capabilities, "elicitation")
	if !r.Version.AtLeast(mcp.V20251125) || !rawjson.Has(elicitation, "url") {
		return false
	}
	count := 0
	for entry := range rawjson.Elements(rawjson.Get(e.Data, "elicitations")) {
		count++
		if rawjson.KindOf(rawjson.Get(entry, "elicitationId")) != rawjson.String {
			return false
		}
	}
	return count > 0
}
