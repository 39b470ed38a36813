package streamable

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/mirror"
)

// Who has just written the params need not have them read back: the headers are the same.
func TestWhatACallerTellsOfItsParamsIsWhatTheySay(t *testing.T) {
	for method, params := range map[string]string{
		mcp.MethodToolsCall:     `"name":"\u0061 ü","arguments":{"name":"b"}`,
		mcp.MethodResourcesRead: `"uri":"file:///a"`,
		mcp.MethodPromptsGet:    `"name":7`,
		mcp.MethodToolsList:     `"cursor":"c"`,
	} {
		read := call(method, params)
		told := *read
		told.About = upstream.About{Version: string(mcp.V20260728), Name: rawjson.Get(read.Params, mirror.NameSource(method))}
		a, b := prepare(read), prepare(&told)
		if a.version != b.version || string(a.name) != string(b.name) || a.named != b.named || string(a.meta()) != string(b.meta()) {
			t.Errorf("%s: read %q %q %v, told %q %q %v", method, a.version, a.name, a.named, b.version, b.name, b.named)
		}
		a.release()
		b.release()
	}
}
