package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// ClientCapabilities returns the capabilities to declare upstream for a client
// that declared the given ones (JSON, nil: none) under revision v: exactly what
// the client can do, in modern terms (A.5). When nothing can reach the client
// on this request (interactive false), whatever the server could ask for is
// left out.
func ClientCapabilities(v mcp.Version, declared []byte, interactive bool) []byte {
	var caps members
	for name, value := range rawjson.Members(declared) {
		if rawjson.KindOf(value) != rawjson.Object {
			continue
		}
		if kind, ok := mcp.InputKindThatNeeds(string(name)); ok {
			if mirrored := questions[kind].declare(v, value); interactive && mirrored != nil {
				caps.put(kind.Capability(), mirrored)
			}
			continue
		}
		switch string(name) {
		case "experimental":
			caps.put("experimental", value)
		case "extensions":
			caps.extensions(value)
		}
	}
	return caps.object()
}

// WithTasks returns caps, as ClientCapabilities made them, with the tasks
// extension declared: the bridge itself can handle server-created tasks.
func WithTasks(caps []byte) []byte {
	extensions := rawjson.Apply(nil, rawjson.Get(caps, "extensions"),
		rawjson.Edit{Name: mcp.ExtensionTasks, Value: []byte("{}")})
	return rawjson.Apply(nil, caps, rawjson.Edit{Name: "extensions", Value: extensions})
}

// samplingCapability keeps what 2025-11-25 defines inside of sampling; older
// revisions define nothing there.
func samplingCapability(v mcp.Version, value []byte) []byte {
	var sub members
	if v.AtLeast(mcp.V20251125) {
		for _, name := range [...]string{"tools", "context"} {
			if raw := rawjson.Get(value, name); rawjson.KindOf(raw) == rawjson.Object {
				sub.put(name, raw)
			}
		}
	}
	return sub.object()
}

// serverCapabilities brings the capabilities of a discover result down (A.4).
// Only what the bridge can vouch for is advertised.
func serverCapabilities(v mcp.Version, offered []byte, opt *InitOptions) []byte {
	var caps members
	for name, value := range rawjson.Members(offered) {
		if rawjson.KindOf(value) != rawjson.Object {
			continue
		}
		switch key := string(name); key {
		case "tools", "prompts", "resources":
			caps.put(key, listCapability(key, value, opt))
		case "logging":
			caps.raw(key, "{}")
		case "completions":
			if v.AtLeast(mcp.V20250326) || opt.Profile == Minimal {
				caps.raw(key, "{}")
			}
		case "experimental":
			caps.put(key, value)
		case "extensions":
			caps.extensions(value)
		}
	}
	if opt.HostTasks && v.AtLeast(mcp.V20251125) { // G.3
		list := ""
		if opt.ListTasks {
			list = `"list":{},`
		}
		caps.raw("tasks", `{`+list+`"cancel":{},"requests":{"tools":{"call":{}}}}`)
	}
	return caps.object()
}

// listCapability keeps the sub-capabilities that the bridge can deliver.
func listCapability(name string, value []byte, opt *InitOptions) []byte {
	var sub members
	if opt.Listen && isTrue(rawjson.Get(value, "listChanged")) {
		sub.raw("listChanged", "true")
	}
	if opt.Listen && name == "resources" && isTrue(rawjson.Get(value, "subscribe")) {
		sub.raw("subscribe", "true")
	}
	return sub.object()
}

func isTrue(v []byte) bool { return rawjson.KindOf(v) == rawjson.True }

// members builds a JSON object.
type members struct{ b []byte }

func (m *members) name(name string) {
	m.b = append(m.b, ',')
	m.b = append(rawjson.AppendQuote(m.b, name), ':')
}

func (m *members) put(name string, value []byte) {
	m.name(name)
	m.b = append(m.b, value...)
}

func (m *members) raw(name, value string) {
	m.name(name)
	m.b = append(m.b, value...)
}

// extensions passes extensions on, entry by entry, except tasks: legacy
// versions do not define it (A.4, A.5).
func (m *members) extensions(value []byte) {
	if rawjson.Has(value, mcp.ExtensionTasks) {
		value = rawjson.Apply(nil, value, rawjson.Edit{Name: mcp.ExtensionTasks})
	}
	for range rawjson.Members(value) { // something is left
		m.put("extensions", value)
		return
	}
}

func (m *members) object() []byte {
	if len(m.b) == 0 {
		return []byte("{}")
	}
	m.b[0] = '{'
	return append(m.b, '}')
}
