package dialect

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// FuzzForms: whatever a server says, what comes of valid JSON is valid JSON.
func FuzzForms(f *testing.F) {
	methods := []string{mcp.MethodToolsCall, mcp.MethodTasksGet, mcp.MethodToolsList, mcp.MethodDiscover, mcp.MethodPromptsGet, mcp.MethodPing}
	for i, text := range []string{
		`{"resultType":"task","task":{"taskId":"a","resultType":1}}`, `{"inputRequests":{"a":{"method":"roots/list"}},"ttl":3}`,
		`{"capabilities":{"tasks":{}},"result_type":"complete","ttlSeconds":1}`, `{"a":{},"b":1}`,
	} {
		f.Add(uint8(i), []byte(text))
		f.Add(uint8(i+7), []byte(text))
	}
	f.Fuzz(func(t *testing.T, n uint8, in []byte) {
		on := forms{On: n&1 == 1, WrapAnswers: true}
		outputs := [][]byte{on.Result(methods[int(n)%len(methods)], in), on.Result(mcp.MethodTasksGet, in), on.InputResponses(in)}
		Hint(in)
		Newest(in)
		if rawjson.Validate(in) != nil {
			return
		}
		for i, got := range outputs {
			if err := rawjson.Validate(got); err != nil {
				t.Fatalf("%d: %v\n in %s\ngot %s", i, err, in, got)
			}
		}
	})
}
