package downstream

import (
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// TestWhatARequestIsAboutIsReadWhereTheProtocolHasIt: elsewhere a member of that name may say anything, be it who a patient is.
func TestWhatARequestIsAboutIsReadWhereTheProtocolHasIt(t *testing.T) {
	const both = `{"name":"n","uri":"u"}`
	for _, tc := range []struct{ method, params, name, uri string }{
		{mcp.MethodToolsCall, both, `"n"`, ""},
		{mcp.MethodPromptsGet, both, `"n"`, ""},
		{mcp.MethodResourcesRead, both, "", `"u"`},
		{mcp.MethodResourcesSubscribe, both, "", `"u"`},
		{mcp.MethodResourcesUnsubscribe, both, "", `"u"`},
		{mcp.MethodToolsList, both, "", ""},
		{mcp.MethodComplete, both, "", ""},
		{"patients/find", both, "", ""},
		{mcp.MethodToolsCall, `{"name":["n"]}`, "", ""},
		{mcp.MethodResourcesRead, `{"uri":7}`, "", ""},
		{mcp.MethodToolsCall, ``, "", ""},
	} {
		r := NewRequest(jsonrpc.Message{ID: "1", Method: tc.method, Params: []byte(tc.params)})
		if string(r.Name) != tc.name || string(r.URI) != tc.uri || string(NameIn(tc.method, []byte(tc.params))) != tc.name {
			t.Errorf("%s %s: name %s, uri %s", tc.method, tc.params, r.Name, r.URI)
		}
	}
}
