package mrtr

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// TestAFaultOfTheServerQuotesNoTextOfIt: words that a program would have stand in it, all else might be anything.
func TestAFaultOfTheServerQuotesNoTextOfIt(t *testing.T) {
	for _, text := range []string{"for Jane Doe", "a@b", "https://h/?q=1", "\"", "\u00e9", strings.Repeat("x", maxToken+1), ""} {
		req := InputRequest{Key: text, Method: text, Params: []byte(`{}`)}
		if got, want := req.fault(), "the server's input request has an unknown method"; got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	req := InputRequest{Key: "a_1", Method: "roots/read-all.2"}
	if got, want := req.fault(), `the server's input request "a_1" has an unknown method "roots/read-all.2"`; got != want {
		t.Error(got)
	}
}

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
