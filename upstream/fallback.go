package upstream

import (
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Fallback knows how to speak with servers that do not offer 2026-07-28 (package dialect).
// Its methods may be called concurrently.
type Fallback interface {
	// Error gives a server's error the code that it has in 2026-07-28, before
	// anything acts on it (I-1, I-7). status is that of HTTP, 0 elsewhere.
	Error(status int, e *jsonrpc.Error) *jsonrpc.Error
	// Version chooses the version to speak with a server that does not offer
	// 2026-07-28, from those that it offers, a JSON array; "" for none (I-8).
	Version(offered []byte) string
}

// Mutual chooses the version to send again with after a -32022: mine, when the
// server names it, else what else it speaks; "" for none (E-39, I-8).
func Mutual(d Fallback, refusal *jsonrpc.Error, mine string) string {
	if namesVersion(refusal, mine) {
		return mine
	}
	if d == nil {
		return ""
	}
	return d.Version(rawjson.Get(refusal.Data, "supported"))
}

// namesVersion reports whether a -32022 lists version as supported.
func namesVersion(e *jsonrpc.Error, version string) bool {
	for offered := range rawjson.Elements(rawjson.Get(e.Data, "supported")) {
		if v, ok := rawjson.Text(offered); ok && v == version {
			return true
		}
	}
	return false
}

// Redeclare returns the params of a request with another protocol version in _meta.
func Redeclare(params []byte, version string) []byte {
	said := rawjson.Apply(nil, rawjson.Get(params, "_meta"), rawjson.Edit{
		Name: mcp.MetaProtocolVersion, Value: rawjson.AppendQuote(nil, version)})
	return rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta", Value: said})
}

// ReadOnly reports whether a method changes nothing by definition, those included
// that only the bridge sends.
func ReadOnly(method string) bool {
	return mcp.IsReadOnly(method) || method == mcp.MethodDiscover || method == mcp.MethodTasksGet
}
