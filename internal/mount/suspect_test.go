package mount

import (
	"context"
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// Whichever way a request went to a server that is gone, somebody looks.
func TestRequestsThatFindNobodySaySo(t *testing.T) {
	for name, start := range map[string]struct {
		server func(*testing.T) string
		ask    func(t *testing.T, url, session string)
	}{
		"translated": {
			func(t *testing.T) string { return peers.NewServer(t, peers.ServerOptions{}).URL },
			func(t *testing.T, url, session string) { post(t, url, session, call("echo")) },
		},
		"passed on": {
			func(t *testing.T) string { return peers.NewServer(t, peers.ServerOptions{}).URL },
			func(t *testing.T, url, _ string) {
				req := request(t, http.MethodPost, url, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
				req.Header.Set("MCP-Protocol-Version", "2026-07-28")
				req.Header.Set("Mcp-Method", "tools/list")
				resp, err := wire.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			},
		},
		"relayed": {
			func(t *testing.T) string { return newSDKServer(t, "2025-06-18").URL },
			func(t *testing.T, url, session string) { post(t, url, session, call("echo")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			front, become := replaceable(t, start.server(t))
			m, url := serve(t, over(front))
			session, _ := initialize(t, url, "2025-06-18", `{}`)
			select {
			case <-m.Away():
				t.Error("it says so while the server is there")
			default:
			}
			become("http://" + testport.Closed)
			start.ask(t, url, session)
			select {
			case <-m.Away():
			default:
				t.Error("nobody learns that the server is gone")
			}
		})
	}
}

// refuses is a server that takes subscriptions/listen in one way.
type refuses struct {
	upstream.Caller
	err error
}

func (r *refuses) Listen(context.Context, *upstream.Call, func(jsonrpc.Message)) error { return r.err }

// A subscription that is refused as another server would may be the first sign that there is another one.
func TestASubscriptionThatIsRefusedOddlyHasTheServerLookedAt_A25(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		look bool
	}{
		"as one without sessions": {&jsonrpc.Error{Code: -32000}, true},
		"with no modern error":    {&upstream.Failure{Cause: upstream.NotModern, Status: http.StatusBadRequest}, true},
		"since it is not known":   {&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}, false},
		"at its end":              {&upstream.Failure{Cause: upstream.Lost}, false},
		"by nobody":               {nil, false},
	} {
		s := &suspecting{&refuses{err: c.err}, make(signal, 1), make(signal, 1)}
		_ = s.Listen(t.Context(), &upstream.Call{Method: mcp.MethodListen}, nil)
		select {
		case <-s.other:
			if !c.look {
				t.Errorf("%s: it is looked at", name)
			}
		default:
			if c.look {
				t.Errorf("%s: nobody looks", name)
			}
		}
	}
}
