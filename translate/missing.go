package translate

import (
	"strings"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// missingCapability turns -32021 into something that tells a person and a model
// what to do: a failed tool call where that is possible, else -32603.
func (r Rules) missingCapability(method string, e *jsonrpc.Error) (result []byte, out *jsonrpc.Error) {
	required := rawjson.Get(e.Data, "requiredCapabilities")
	if rawjson.KindOf(required) != rawjson.Object {
		required = nil
	}
	text := r.missingText(required)
	if method == mcp.MethodToolsCall {
		return toolError(text, metaRequired, required), nil
	}
	out = recoded(&jsonrpc.Error{Code: e.Code}, jsonrpc.CodeInternal, text)
	if required != nil {
		bridge := rawjson.Apply(nil, rawjson.Get(out.Data, "bridge"),
			rawjson.Edit{Name: "requiredCapabilities", Value: required})
		out.Data = rawjson.Apply(nil, nil, rawjson.Edit{Name: "bridge", Value: bridge})
	}
	return nil, out
}

// missingText names what the client lacks and what to do about it.
func (r Rules) missingText(required []byte) string {
	needs := r.missingNeeds(required)
	if len(needs) == 0 {
		needs = []string{"a capability that the server did not name"}
	}
	return "The server can only do this with a client that supports " + strings.Join(needs, " and ") +
		". The connected client (MCP " + string(r.Version) + ") does not. Trying again will not help. " +
		"Give everything that is needed in the arguments if that is possible, use another tool, " +
		"or ask the user to connect with a client that has this capability." + r.switchable(required)
}

// switchable says what whoever runs the bridge could switch on, where nobody answers
// for clients.
func (r Rules) switchable(required []byte) string {
	if r.AnsweredFor {
		return ""
	}
	var settings []string
	for kind := range mcp.InputKinds {
		if setting := Setting(kind); setting != "" && rawjson.Has(required, kind.Capability()) {
			settings = append(settings, setting)
		}
	}
	if len(settings) == 0 {
		return ""
	}
	return " Whoever runs the bridge can do without it: " + strings.Join(settings, ", ") + "."
}

// missingNeeds describes required capabilities in words, each with the first
// revision that has it when the client's is older.
func (r Rules) missingNeeds(required []byte) (needs []string) {
	for name, value := range rawjson.Members(required) {
		kind, asks := mcp.InputKindThatNeeds(string(name))
		switch {
		case asks:
			needs = append(needs, questions[kind].need(r, value))
		case string(name) == "extensions":
			for extension := range rawjson.Members(value) {
				if needs = append(needs, "the extension "+bounded(string(extension))); len(needs) >= 8 {
					break
				}
			}
		default:
			needs = append(needs, "the capability "+bounded(string(name)))
		}
		if len(needs) >= 8 {
			break
		}
	}
	return needs
}

func (r Rules) since(what string, first mcp.Version) string {
	if r.Version.AtLeast(first) {
		return what
	}
	return what + ", which needs MCP " + string(first) + " or newer"
}
