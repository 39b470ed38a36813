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
	// Offered tells which versions the server has said that it offers, a JSON array.
	Offered(versions []byte)
}

// Mutual chooses the version to send again with after a -32022: mine, when the
// server names it, else what else it speaks; "" for none (E-39, I-8).
func Mutual(d Fallback, refusal *jsonrpc.Error, mine string) string {
	return Choose(d, rawjson.Get(refusal.Data, "supported"), mine)
}

// Choose is Mutual for a list of versions, a JSON array.
func Choose(d Fallback, offered []byte, mine string) string {
	switch {
	case Offers(offered, mine):
		return mine
	case d == nil:
		return ""
	}
	return d.Version(offered)
}

// Offers reports whether a list of versions, a JSON array, has this one.
func Offers(offered []byte, version string) bool {
	for e := range rawjson.Elements(offered) {
		if v, ok := rawjson.Text(e); ok && v == version {
			return true
		}
	}
	return false
}

// Declared returns the protocol version that the params of a request declare in _meta, "" for none.
func Declared(params []byte) string {
	version, _ := rawjson.Text(rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaProtocolVersion))
	return version
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
