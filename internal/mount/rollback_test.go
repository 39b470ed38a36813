package mount

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sessions/store"
)

// namings are the requests that a client makes in its session.
var namings = map[string]struct{ method, body string }{
	"a request":         {http.MethodPost, listTools},
	"an array":          {http.MethodPost, "[" + listTools + "]"},
	"a person's answer": {http.MethodPost, `{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"v":"private"}}}`},
	"a notification":    {http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
	"GET":               {http.MethodGet, ""},
	"DELETE":            {http.MethodDelete, ""},
}

// rolledBack is an endpoint whose server was a modern one when a session was opened, and speaks older
// revisions only by now. The session waits with a question.
type rolledBack struct {
	old     *sdkServer
	kept    *store.Memory
	mount   *Mount
	url     string
	session string
}

// records returns what the store has of a session.
func (r *rolledBack) records(t *testing.T, session string) []store.Record {
	t.Helper()
	list, err := r.kept.Load(t.Context(), store.Name(r.mount.Scope()+"\n"+session))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// rollBack changes the server of a session. Restarted, the bridge is another process by then, which kept says
// has the same store.
func rollBack(t *testing.T, kept *store.Memory, restarted bool) *rolledBack {
	t.Helper()
	old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
	front, become := replaceable(t, modern.URL)
	opt := func() Options {
		o := over(front)
		if kept != nil {
			o.Legacy.Store = kept
		}
		return o
	}
	m, url := serve(t, opt())
	r := &rolledBack{old: old, kept: kept, mount: m, url: url}
	r.session, _ = initialize(t, url, "2025-06-18", `{"elicitation":{}}`)
	ctx, leave := context.WithCancel(t.Context())
	resp, err := wire.Do(request(t, http.MethodPost, url, r.session, greet).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = resp.Body.Read(make([]byte, 1)) // it is asked
	leave()
	_ = resp.Body.Close()
	if restarted {
		m.Close()
	}
	become(old.URL)
	if restarted {
		r.mount, r.url = serve(t, opt())
	} else {
		m.Prober.Forget() // as if its time had come
		m.Judge(t.Context())
		for ctx := patience(t); m.HTTP.Holds(r.session); runtime.Gosched() { // until its call has ended
			if ctx.Err() != nil {
				t.Fatal("the session does not end")
			}
		}
	}
	return r
}

// A session of the bridge is none of the server that took the place of its own, wherever it is: its client
// is told to begin anew, and the server sees neither its id nor what a person answered.
func TestARolledBackServerSeesNoSessionOfTheBridge_A32(t *testing.T) {
	for place, tc := range map[string]struct{ stored, restarted, judged bool }{
		"in memory":                         {false, false, true},
		"of a process before":               {false, true, true},
		"ended, and in the store before":    {true, false, true},
		"in the store":                      {true, true, true},
		"in the store, of an unseen server": {true, true, false},
	} {
		for name, naming := range namings {
			if !tc.judged && naming.method == http.MethodGet {
				continue // like the others
			}
			t.Run(name+", "+place, func(t *testing.T) {
				var kept *store.Memory
				if tc.stored {
					kept = store.NewMemory(100)
				}
				r := rollBack(t, kept, tc.restarted)
				if tc.judged {
					r.mount.Judge(t.Context())
				}
				for range 2 {
					if status, body := send(t, naming.method, r.url, r.session, naming.body); status != http.StatusNotFound {
						t.Errorf("it gets %d %s", status, body)
					}
				}
				for _, x := range r.old.requests("") {
					if x.header.Get("Mcp-Session-Id") != "" {
						t.Errorf("the server sees its %s", x.method)
					}
				}
				if tc.stored && len(r.records(t, r.session)) > 0 {
					t.Error("it is still in the store")
				}
				if id, body := initialize(t, r.url, "2025-06-18", `{}`); id == "" || r.mount.HTTP.Holds(id) {
					t.Errorf("its client cannot begin anew: %s", body)
				}
			})
		}
	}
}

// The ids of sessions from before ids had marks are known where the sessions are.
func TestAnOlderSessionIdIsKnownFromTheStore_A32(t *testing.T) {
	r := rollBack(t, store.NewMemory(100), true)
	const older = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var changes []store.Change
	for _, x := range r.records(t, r.session) {
		if x.Kind == store.Session {
			changes = append(changes, store.Change{Kind: x.Kind, ID: x.ID, TTL: x.TTL, Value: bytes.ReplaceAll(x.Value, []byte(r.session), []byte(older))})
		}
	}
	if err := r.kept.Commit(t.Context(), store.Name(r.mount.Scope()+"\n"+older), changes...); err != nil || len(changes) != 1 {
		t.Fatal(err, changes)
	}
	for range 2 {
		if status, body := post(t, r.url, older, listTools); status != http.StatusNotFound || !strings.Contains(body, "initialize") {
			t.Errorf("it gets %d %s", status, body)
		}
	}
	if left := r.records(t, older); len(left) > 0 {
		t.Error("it is still in the store")
	}
	for _, x := range r.old.requests("") {
		if x.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("the server sees its %s", x.method)
		}
	}
}

// A modern server is shown no session of the bridge either, and answers all the same.
func TestAModernServerSeesNoSessionOfTheBridge_A32(t *testing.T) {
	var named string
	front := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") != "" {
			named = r.Header.Get("Mcp-Session-Id")
		}
		asked, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(rawjson.Get(asked, "id")) + `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"tools":[]}}`))
	})
	_, url := serve(t, over(front))
	session := session(t, url)
	if status, _ := send(t, http.MethodDelete, url, session, ""); status != http.StatusNoContent {
		t.Fatalf("DELETE gets %d", status)
	}
	req := request(t, http.MethodPost, url, session, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/list")
	resp, err := wire.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || named != "" {
		t.Errorf("answered %d, and the server sees %q", resp.StatusCode, named)
	}
}

// A bridge may be the server of another bridge: what is a session of that one is none of this one.
func TestSessionsOfABridgeBehindABridgeAreItsOwn_A16(t *testing.T) {
	_, inner := serve(t, process(t, sdkLegacy, 0))
	_, first := serve(t, over(inner))
	session := session(t, first)
	second, again := serve(t, over(inner))
	second.Judge(t.Context()) // as the command does at its start
	if status, body := post(t, again, session, listTools); status != http.StatusOK || !strings.Contains(body, `"ask"`) {
		t.Errorf("another process of the bridge in front answers the session with %d %s", status, body)
	}
}

// So it is where nobody may be relayed to the server that has come, each time.
func TestASessionEndsWithTheEraOfItsServerWhoeverMayBeRelayed_A32(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
	front, become := replaceable(t, modern.URL)
	opt := over(front)
	opt.Relay = negotiate.RelayNever
	m, url := serve(t, opt)
	for range 2 {
		session, body := initialize(t, url, "2025-06-18", `{}`)
		if session == "" {
			t.Fatal(body)
		}
		become(old.URL)
		_ = m.Reach(t.Context())
		for ctx := patience(t); m.HTTP.Holds(session); runtime.Gosched() {
			if ctx.Err() != nil {
				t.Fatal("the session does not end")
			}
		}
		if status, body := post(t, url, session, listTools); status != http.StatusNotFound {
			t.Errorf("it gets %d %s", status, body)
		}
		if id, body := initialize(t, url, "2025-06-18", `{}`); id != "" || !strings.Contains(body, "legacy server") {
			t.Errorf("a new one gets %s", body)
		}
		become(modern.URL)
		_ = m.Reach(t.Context())
	}
}
