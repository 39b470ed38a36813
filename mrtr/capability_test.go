package mrtr

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// TestWhatAKindNeedsHasToBeDeclared_C33, for every kind there is and for what is none.
func TestWhatAKindNeedsHasToBeDeclared_C33(t *testing.T) {
	everything := []byte(`{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`)
	for k := range mcp.InputKinds {
		req := InputRequest{Key: "q", Method: k.Method(), Params: []byte(`{}`)}
		if abort := req.check([]byte(`{}`)); abort == nil || abort.Undeclared != k.Capability() {
			t.Errorf("%s, undeclared: %v", k.Method(), abort)
		}
		if abort := req.check(everything); abort != nil {
			t.Errorf("%s, declared: %v", k.Method(), abort)
		}
		req.Params = nil
		if abort := req.check(everything); (abort != nil) != k.NeedsParams() {
			t.Errorf("%s without params: %v", k.Method(), abort)
		}
	}
	req := InputRequest{Key: "q", Method: "roots/read", Params: []byte(`{}`)}
	if abort := req.check(everything); abort == nil || !strings.Contains(abort.Reason, "unknown method") || req.Missing(everything) == "" {
		t.Errorf("no kind: %v", abort)
	}
}
