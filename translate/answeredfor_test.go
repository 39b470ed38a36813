package translate

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// Who runs the bridge learns from the error what could be switched on, unless somebody
// is configured already.
func TestMissingCapabilitySaysWhatCouldBeSwitchedOn(t *testing.T) {
	for capability, setting := range map[string]string{"elicitation": "questions: page", "sampling": "sampling.provider", "roots": "roots (folders", "other": ""} {
		lacking := &jsonrpc.Error{Code: -32021, Data: []byte(`{"requiredCapabilities":{"` + capability + `":{}}}`)}
		for _, answered := range []bool{false, true} {
			r := Rules{Version: mcp.V20241105, AnsweredFor: answered}
			result, _ := r.missingCapability(mcp.MethodToolsCall, lacking)
			says := strings.Contains(string(result), "Whoever runs the bridge")
			if says != (setting != "" && !answered) || says && !strings.Contains(string(result), setting) {
				t.Errorf("%s, answered for %v: %s", capability, answered, result)
			}
		}
	}
}
