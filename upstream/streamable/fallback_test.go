package streamable

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// onlyDraft admits DRAFT-2026-v1, whose code for versions was another one.
type onlyDraft struct{}

func (onlyDraft) Error(status int, e *jsonrpc.Error) *jsonrpc.Error {
	if status == 200 || e.Code != -32004 {
		return e
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedVersion, Message: e.Message, Data: e.Data}
}

func (onlyDraft) Offered([]byte) {}

func (onlyDraft) Version(offered []byte) string {
	if strings.Contains(string(offered), "DRAFT-2026-v1") {
		return "DRAFT-2026-v1"
	}
	return ""
}

func TestI1ErrorsAreSettledBeforeTheyAreMended(t *testing.T) {
	for _, drafts := range []upstream.Fallback{nil, onlyDraft{}} {
		p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
			if g.header.Get("Mcp-Protocol-Version") != "DRAFT-2026-v1" {
				refuseWith(w, g.msg.ID, 400, -32004, `{"supported":["DRAFT-2026-v1"]}`)
				return
			}
			answer(w, g.msg.ID, `{}`)
		})
		ans := mustDo(t, newClient(t, p.URL, Options{Fallback: drafts}), call(mcp.MethodDiscover, ""))
		if admitted := drafts != nil; (ans.Error == nil) != admitted || ans.Error != nil && ans.Error.Code != -32004 {
			t.Errorf("admitted %v: %+v", admitted, ans)
		}
	}
}
