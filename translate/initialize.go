package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// InitOptions say what the bridge can do for the client that initializes.
type InitOptions struct {
	Profile Profile

	// Listen says that changes can be delivered: a listen stream upstream and a
	// channel for unrelated messages downstream. Without it neither listChanged
	// nor subscribe is advertised (A.4).
	Listen bool

	// ServerInfo is what an earlier result said about the server, as JSON; used
	// when the discover result does not say it. nil: unknown.
	ServerInfo []byte

	// Name stands in when nobody says what the server is called.
	Name string

	HostTasks bool // advertise tasks hosted by the bridge (G.3)
	ListTasks bool // with HostTasks: offer tasks/list; needs authenticated principals
}

// InitializeResult builds the answer to initialize from a discover result
// (A.3). v is the negotiated revision. The error is a *Malformed.
func InitializeResult(v mcp.Version, discover []byte, opt InitOptions) ([]byte, error) {
	if rawjson.KindOf(discover) != rawjson.Object {
		return nil, &Malformed{mcp.MethodDiscover, "not an object"}
	}
	meta := rawjson.Get(discover, "_meta")
	var m members
	m.put("protocolVersion", rawjson.AppendQuote(nil, string(v)))
	m.put("capabilities", serverCapabilities(v, rawjson.Get(discover, "capabilities"), &opt))
	m.put("serverInfo", serverInfo(v, discover, &opt))
	if raw := rawjson.Get(discover, "instructions"); rawjson.KindOf(raw) == rawjson.String {
		m.put("instructions", raw)
	}
	if rest := withoutOwned(meta); rest != nil {
		m.put("_meta", rest)
	}
	return m.object(), nil
}

// ServerInfo returns what a modern result says about its server, or nil. Some
// servers say it at the top level of discover (I-2).
func ServerInfo(result []byte) []byte {
	info := rawjson.Get(rawjson.Get(result, "_meta"), mcp.MetaServerInfo)
	if rawjson.KindOf(info) != rawjson.Object {
		info = rawjson.Get(result, "serverInfo")
	}
	if rawjson.KindOf(info) != rawjson.Object {
		return nil
	}
	return info
}

// serverInfo finds or makes the implementation data that the legacy result
// requires and the modern one only recommends (A.3).
func serverInfo(v mcp.Version, discover []byte, opt *InitOptions) []byte {
	info := ServerInfo(discover)
	if info == nil {
		info = opt.ServerInfo
	}
	var edits []rawjson.Edit
	if rawjson.KindOf(rawjson.Get(info, "name")) != rawjson.String {
		name := opt.Name
		if name == "" {
			name = "upstream"
		}
		edits = append(edits, rawjson.Edit{Name: "name", Value: rawjson.AppendQuote(nil, name)})
	}
	if rawjson.KindOf(rawjson.Get(info, "version")) != rawjson.String {
		edits = append(edits, rawjson.Edit{Name: "version", Value: []byte(`"0.0.0"`)})
	}
	if opt.Profile == Strict {
		if !v.AtLeast(mcp.V20250618) {
			edits = append(edits, rawjson.Edit{Name: "title"})
		}
		if !v.AtLeast(mcp.V20251125) {
			edits = append(edits, rawjson.Edit{Name: "icons"},
				rawjson.Edit{Name: "description"}, rawjson.Edit{Name: "websiteUrl"})
		}
	}
	return rawjson.Apply(nil, info, edits...)
}

// withoutOwned returns meta without the protocol's own keys, or nil when
// nothing is left.
func withoutOwned(meta []byte) []byte {
	var edits []rawjson.Edit
	count := 0
	for name := range rawjson.Members(meta) {
		count++
		if ownedKey(name) {
			edits = append(edits, rawjson.Edit{Name: string(name)})
		}
	}
	if count == len(edits) {
		return nil
	}
	return rawjson.Apply(nil, meta, edits...)
}
