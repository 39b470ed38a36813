package mount

import (
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/negotiate"
)

func TestClientsOfALegacyServerAreRelayedWithTheirSessions_A16(t *testing.T) {
	server := newSDKServer(t, "2025-06-18", "2025-03-26")
	m, url := serve(t, over(server.URL))
	c := agreeable(t, url, peers.ClientOptions{Version: "2025-06-18", Standalone: true})
	if _, err := c.Call(patience(t), "ask", nil); err != nil {
		t.Fatal(err)
	}
	direct := agreeable(t, server.URL, peers.ClientOptions{Version: "2025-06-18"})
	for name, client := range map[string]*peers.Client{"relayed": c, "direct": direct} {
		res, err := client.CallTool(patience(t), &mcp.CallToolParams{Name: "ask", Meta: mcp.Meta{"progressToken": "p"}})
		if err != nil || peers.Text(res) != "you said accept" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		client.WaitFor(t, patience(t), "notifications/progress", 1)
	}
	if got, want := c.InitializeResult(), direct.InitializeResult(); !reflect.DeepEqual(got, want) {
		t.Errorf("initialized with %+v, directly with %+v", got, want)
	}
	if m.Sessions() != 0 || m.Bridge == nil {
		t.Errorf("the bridge holds %d sessions itself", m.Sessions())
	}
	// The session is the server's own, on every way to it.
	server.mcp.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
	c.WaitFor(t, patience(t), "notifications/tools/list_changed", 1)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	id := c.ID()
	if id == "" {
		t.Fatal("no session")
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		named := false
		for _, x := range server.requests(method) {
			named = named || x.header.Get("Mcp-Session-Id") == id
		}
		if !named && method != http.MethodGet { // the GET has not ended when it is looked for
			t.Errorf("the server saw no %s of session %s", method, id)
		}
	}
}

func TestSessionsOfALegacyServerSurviveTheBridge_A16(t *testing.T) {
	server := newSDKServer(t, "2025-06-18")
	_, first := serve(t, over(server.URL))
	session, _ := initialize(t, first, "2025-06-18", `{}`)
	second, again := serve(t, over(server.URL))
	second.Judge(t.Context()) // as the command does at its start
	if status, body := post(t, again, session, listTools); status != http.StatusOK || !strings.Contains(body, `"ask"`) {
		t.Errorf("another bridge answers the session with %d %s", status, body)
	}
}

func TestLegacyServersAreRefusedWhereNobodyMayBeRelayed_A24(t *testing.T) {
	server := newSDKServer(t, "2025-06-18")
	opt := over(server.URL)
	opt.Relay = negotiate.RelayNever
	_, url := serve(t, opt)
	if session, body := initialize(t, url, "2025-06-18", `{}`); session != "" || !strings.Contains(body, "legacy server: it offers 2025-06-18") {
		t.Errorf("session %q, %s", session, body)
	}
}

// TestDualEraServers: the policy and what the client wants decide who answers;
// the bridge's own sessions work all the same beside the server's.
func TestDualEraServersAreTranslatedOrRelayed_A16(t *testing.T) {
	server := newSDKServer(t)
	const plain, tasks = `{}`, `{"tasks":{}}`
	for _, tc := range []struct {
		name    string
		policy  negotiate.RelayPolicy
		caps    string
		relayed bool
	}{
		{"auto", negotiate.RelayAuto, plain, false},
		{"auto, client that hosts tasks", negotiate.RelayAuto, tasks, true},
		{"always", negotiate.RelayAlways, plain, true},
		{"never", negotiate.RelayNever, tasks, false},
	} {
		opt := over(server.URL)
		opt.Relay = tc.policy
		m, url := serve(t, opt)
		session, body := initialize(t, url, "2025-11-25", tc.caps)
		if session == "" || !strings.Contains(body, `"name":"sdk"`) {
			t.Fatalf("%s: initialize answers %s", tc.name, body)
		}
		if m.HTTP.Holds(session) == tc.relayed || !m.Holds(session) {
			t.Errorf("%s: the session is the bridge's: %v", tc.name, m.HTTP.Holds(session))
		}
		if status, body := post(t, url, session, listTools); status != http.StatusOK || !strings.Contains(body, `"ask"`) {
			t.Errorf("%s: tools/list answers %d %s", tc.name, status, body)
		}
		busy(t, m, 1)
		if status, _ := send(t, http.MethodDelete, url, session, ""); status >= 300 {
			t.Errorf("%s: DELETE answers %d", tc.name, status)
		}
		if status, _ := post(t, url, session, listTools); status != http.StatusNotFound {
			t.Errorf("%s: after its end the session answers %d", tc.name, status)
		}
		busy(t, m, 0)
	}
}

func TestAServerThatBecameModernIsTranslatedFor_A16(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
	front, become := replaceable(t, old.URL)
	m, url := serve(t, over(front))
	session, _ := initialize(t, url, "2025-06-18", `{}`)
	become(modern.URL)
	m.Prober.Forget() // as if its time had come
	if id, body := initialize(t, url, "2025-06-18", `{}`); !m.HTTP.Holds(id) {
		t.Errorf("the bridge does not serve the new session: %s", body)
	}
	if status, _ := post(t, url, session, listTools); status != http.StatusNotFound {
		t.Errorf("the old session answers %d; its client must learn that it is gone", status)
	}
}

func TestSessionsEndWhenTheirServerBecameALegacyOne_A16(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
	front, become := replaceable(t, modern.URL)
	m, url := serve(t, over(front))
	session, _ := initialize(t, url, "2025-06-18", `{}`)
	kept, _ := initialize(t, url, "2025-06-18", `{}`)
	if status, _ := send(t, http.MethodDelete, url, kept, ""); status >= 300 {
		t.Fatalf("DELETE answers %d", status)
	}
	if !m.HTTP.Holds(session) {
		t.Fatal("the bridge does not serve the session")
	}
	become(old.URL)
	m.Prober.Forget() // as if its time had come
	if _, body := initialize(t, url, "2025-06-18", `{}`); !strings.Contains(body, `"sdk"`) {
		t.Fatalf("the new session is not relayed: %s", body)
	}
	for ctx := patience(t); m.HTTP.Holds(session); runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatal("the old session is still there")
		}
	}
	if status, body := post(t, url, session, listTools); status != http.StatusNotFound {
		t.Errorf("the old session answers %d %s; its client must learn that it is gone", status, body)
	}
}

// Nobody comes anew, and nobody asks what the server is: what it answers those who are there
// is proof enough.
func TestTheFirstAnswerOfAnotherServerEndsItsSessions_A16(t *testing.T) {
	front, become := replaceable(t, peers.NewServer(t, peers.ServerOptions{}).URL)
	_, url := serve(t, over(front))
	session, _ := initialize(t, url, "2025-06-18", `{}`)
	if status, body := post(t, url, session, listTools); status != http.StatusOK {
		t.Fatalf("it answers %d %s", status, body)
	}
	become(newSDKServer(t, "2025-06-18").URL)
	for ctx := patience(t); ; runtime.Gosched() {
		status, body := post(t, url, session, call("echo"))
		if status == http.StatusNotFound {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the session of the server before goes on: %d %s", status, body)
		}
	}
}

// A server that became modern shows that to the first newcomer who is relayed.
func TestInitializeProvesAVerdictStale_A25(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
	for name, way := range ways {
		front, become := replaceable(t, old.URL)
		m, base := mounted(t, over(front))
		m.Judge(t.Context()) // a legacy one
		become(modern.URL)
		c, err := peers.Connect(patience(t), way(t, m, base), peers.ClientOptions{Version: "2025-06-18"})
		if err != nil {
			t.Errorf("%s: a newcomer gets %v", name, err)
			continue
		}
		if list, err := c.ListTools(patience(t), nil); err != nil || len(list.Tools) == 0 {
			t.Errorf("%s: tools/list: %v, %v", name, list, err)
		}
		_ = c.Close()
	}
}

func TestRequestsWithoutASessionFollowTheServersEra_A28(t *testing.T) {
	for name, versions := range map[string][]string{"legacy": {"2025-06-18"}, "dual-era": nil} {
		server := newSDKServer(t, versions...)
		m, url := serve(t, over(server.URL))
		m.Judge(t.Context())
		before := len(server.requests(http.MethodPost))
		_, body := post(t, url, "", listTools)
		arrived := server.requests(http.MethodPost)[before:]
		relayed := len(arrived) > 0 && arrived[0].header.Get("Mcp-Method") == ""
		if relayed != (name == "legacy") {
			t.Errorf("%s: relayed %v, %s", name, relayed, body)
		}
	}
}

// busy waits until so many sessions are left: a request that was handed on counts
// until its handler has returned, a little longer than its response takes.
func busy(t *testing.T, m *Mount, want int) {
	t.Helper()
	for ctx := patience(t); m.Busy() != want; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("%d sessions are left, want %d", m.Busy(), want)
		}
	}
}

const listTools = `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`

// replaceable is a URL behind which there is first one server, and then another one.
func replaceable(t *testing.T, url string) (front string, become func(url string)) {
	t.Helper()
	var now atomic.Value // the mount may be at it while the server changes
	now.Store(url)
	front = newFront(t, func(w http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, now.Load().(string), r.Body)
		req.Header, req.ContentLength = r.Header.Clone(), r.ContentLength
		resp, err := wire.Transport.RoundTrip(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(w, resp.Body)
	})
	return front, func(url string) { now.Store(url) }
}
