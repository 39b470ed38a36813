// Package negotiate judges a peer: which era a request belongs to, which
// legacy version a client gets, and what kind of server the upstream is.
//
// It owns the rules and the cached verdict. It neither sends nor receives: a
// Peer asks the upstream on its behalf, and the packages that carry messages
// act on its judgement. No other package compares eras.
package negotiate

import (
	"net/http"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Era is the protocol era of a request or a server.
type Era int

// The eras. Unknown means that there is no evidence either way.
const (
	Unknown Era = iota
	Legacy
	Modern
	Dual
)

// String returns the specification's word for the era.
func (e Era) String() string {
	return [...]string{"unknown", "legacy", "modern", "dual-era"}[e]
}

// Version settles the version of a session from the raw value of
// initialize.params.protocolVersion, nil when it is absent. A legacy version is
// granted as asked for; any other string gets the newest legacy version, never
// a modern one. Anything but a string is an error (A.2).
func Version(requested []byte) (mcp.Version, *jsonrpc.Error) {
	text, ok := rawjson.Text(requested)
	if !ok {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "protocolVersion must be a string", Data: versionData(requested)}
	}
	if v := mcp.Version(text); v.IsLegacy() {
		return v, nil
	}
	return mcp.Legacy[len(mcp.Legacy)-1], nil
}

// maxEcho bounds the refused value that an error repeats, in bytes.
const maxEcho = 200

// versionData is the error data of the lifecycle pages: what the bridge offers
// downstream, and what was asked for.
func versionData(requested []byte) []byte {
	data := []byte(`{"supported":[`)
	for i, v := range mcp.Legacy {
		if i > 0 {
			data = append(data, ',')
		}
		data = rawjson.AppendQuote(data, string(v))
	}
	data = append(data, `],"requested":`...)
	if requested == nil || len(requested) > maxEcho {
		requested = []byte("null")
	}
	data = append(data, requested...)
	return append(data, `,"bridge":{}}`...) // F-2
}

// Classify judges the era of one downstream message by its body; h, which may
// be nil, decides only where the body says nothing. Legacy clients are known
// to send modern headers, even on initialize.
func Classify(method string, params []byte, h http.Header) Era {
	if method == mcp.MethodInitialize || method == mcp.NotificationInitialized {
		return Legacy
	}
	if rawjson.Has(rawjson.Get(params, "_meta"), mcp.MetaProtocolVersion) {
		return Modern
	}
	switch method {
	case mcp.MethodDiscover, mcp.MethodListen:
		return Modern
	}
	// A modern request that forgot _meta is for the modern server to refuse. A
	// session is proof of the contrary, and a response has no method.
	if method != "" && len(h[mcp.HeaderSessionID]) == 0 && isModern(h.Get(mcp.HeaderProtocolVersion)) {
		return Modern
	}
	return Legacy
}

// InSession judges a message on a connection that has a session open. Eras are told
// apart message by message, but only what a message declares itself takes it out of the
// session.
func InSession(method string, params []byte) Era {
	if method == mcp.MethodInitialize || !rawjson.Has(rawjson.Get(params, "_meta"), mcp.MetaProtocolVersion) {
		return Legacy
	}
	return Modern
}

// isModern reports whether a version string is that of a modern revision.
// Drafts of unknown era are not.
func isModern(v string) bool {
	return len(v) == len(mcp.V20260728) && v[0] >= '2' && v[0] <= '9' && mcp.Version(v).AtLeast(mcp.V20260728)
}
