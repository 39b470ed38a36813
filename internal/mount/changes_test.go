package mount

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/negotiate"
)

// waiting adds a tool whose calls wait until they are let go. begun gets one for each.
func waiting(s *sdk.Server) (begun chan struct{}, letGo context.CancelFunc) {
	free, letGo := context.WithCancel(context.Background())
	begun = make(chan struct{}, 8)
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		begun <- struct{}{}
		select {
		case <-free.Done():
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "waited"}}}, nil, nil
	})
	return begun, letGo
}

const (
	waits = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{}}}`
	greet = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{}}}`
)

// A server that becomes another one while calls are under way answers these: nothing else of
// their sessions goes on.
func TestCallsUnderWayOutliveAChangeOfEra_A16(t *testing.T) {
	for change, toLegacy := range map[string]bool{"to legacy": true, "to modern": false} {
		for way, dial := range plainly {
			t.Run(way+" "+change, func(t *testing.T) {
				old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
				first, firstURL, next := old.mcp, old.URL, modern.URL
				if toLegacy {
					first, firstURL, next = modern.MCP, modern.URL, old.URL
				}
				begun, letGo := waiting(first)
				defer letGo()
				front, become := replaceable(t, firstURL)
				m, base := mounted(t, over(front))
				c := dial(t, m, base)
				c.open(`{}`)
				c.tell(fmt.Sprintf(waits, 1))
				c.tell(fmt.Sprintf(waits, 2))
				<-begun
				<-begun
				become(next)
				m.Prober.Forget() // as if its time had come
				m.Judge(t.Context())
				for ctx := patience(t); ; runtime.Gosched() {
					c.tell(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
					if got := c.next(); strings.Contains(got, "session") && strings.Contains(got, `"error"`) {
						break
					}
					if ctx.Err() != nil {
						t.Fatal("requests still begin")
					}
				}
				letGo()
				for range 2 {
					if got := c.next(); !strings.Contains(got, "waited") {
						t.Errorf("a call ends with %q", got)
					}
				}
				c.ends()
			})
		}
	}
}

// What waits for its client when the server becomes a legacy one is answered, and no round of
// it goes there.
func TestCallsThatAskAreAnsweredWhenTheirServerBecomesALegacyOne_A16(t *testing.T) {
	for way, dial := range plainly {
		t.Run(way, func(t *testing.T) {
			old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
			front, become := replaceable(t, modern.URL)
			m, base := mounted(t, over(front))
			c := dial(t, m, base)
			c.open(`{"elicitation":{}}`)
			c.tell(greet)
			if got := c.next(); !strings.Contains(got, "elicitation/create") {
				t.Fatalf("it is asked %s", got)
			}
			become(old.URL)
			m.Prober.Forget() // as if its time had come
			m.Judge(t.Context())
			if got := c.next(); !strings.Contains(got, "notifications/cancelled") {
				t.Errorf("its question ends with %q", got)
			}
			if got := c.next(); !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "its server") {
				t.Errorf("the call ends with %q", got)
			}
			c.ends()
			for _, r := range old.requests("") {
				if r.header.Get("Mcp-Name") != "" {
					t.Error("the legacy server gets a round of it")
				}
			}
		})
	}
}

// Nobody comes anew, and nobody asks what the server is: what it answers those whom it was
// relayed to is proof enough, over whichever transport.
func TestTheFirstAnswerOfAnotherServerEndsRelayedSessions_A16(t *testing.T) {
	for name, tc := range map[string]struct {
		policy   negotiate.RelayPolicy
		versions []string
	}{"legacy": {negotiate.RelayAuto, []string{"2025-06-18"}}, "dual-era": {negotiate.RelayAlways, nil}} {
		for way, dial := range plainly {
			t.Run(way+" to "+name, func(t *testing.T) {
				front, become := replaceable(t, newSDKServer(t, tc.versions...).URL)
				opt := over(front)
				opt.Relay = tc.policy
				m, base := mounted(t, opt)
				c := dial(t, m, base)
				c.open(`{}`)
				become(peers.NewServer(t, peers.ServerOptions{}).URL)
				c.ends()
			})
		}
	}
}

// ending is a session, and closed with its end.
type ending struct {
	downstream.Pusher
	over chan struct{}
}

func (e ending) End(error) { close(e.over) }

// opened is a backend that is told something else about its server while it opens a session.
type opened struct {
	downstream.Backend
	told func()
}

func (o opened) Open(context.Context, downstream.Caller, jsonrpc.Message, downstream.Pusher) (downstream.Conversation, []byte, error) {
	o.told()
	return bridged{}, nil, nil
}

// A session may be opened while its server changes: it relies on what that was.
func TestASessionThatOpensWhileItsServerChangesEnds_A16(t *testing.T) {
	for name, tc := range map[string]struct{ relayed, was, is, ends bool }{
		"translated": {false, false, true, true}, "relayed": {true, true, false, true},
		"translated, as the server is by then": {false, true, false, false}, "relayed, as the server is by then": {true, false, true, false},
		"a client that is told something of its own": {false, true, true, false},
	} {
		v := &verdicts{}
		v.legacyOnly.Store(tc.was)
		h := &handover{verdicts: v, relying: map[*relying]struct{}{}, Backend: opened{told: func() { v.legacyOnly.Store(tc.is) }}}
		push := ending{over: make(chan struct{})}
		if tc.relayed {
			v.legacyOnly.Store(tc.is)
			h.enlist(&relying{Conversation: bridged{}, push: push, relayed: true}, tc.was)
		} else if _, _, err := h.translate(t.Context(), downstream.Caller{}, jsonrpc.Message{}, push); err != nil {
			t.Fatal(err)
		}
		select {
		case <-push.over:
			if !tc.ends {
				t.Errorf("%s: it ends", name)
			}
		default:
			if tc.ends {
				t.Errorf("%s: it goes on", name)
			}
		}
	}
}
