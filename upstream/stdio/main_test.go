package stdio

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		actAsChild(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

const meta = `"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28","` + mcp.MetaClientCapabilities + `":{}}`

func call(method, params string) *upstream.Call {
	if params != "" {
		params = "," + params
	}
	return &upstream.Call{Method: method, Params: []byte("{" + meta + params + "}")}
}

func requestOf(call *upstream.Call) *request { return &request{call: call, params: call.Params} }

func mustDo(t testing.TB, c upstream.Caller, call *upstream.Call) *upstream.Answer {
	t.Helper()
	ans, err := c.Do(context.Background(), call, nil)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	return ans
}
