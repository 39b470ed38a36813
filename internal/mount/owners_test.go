package mount

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sessions/store"
)

// diary is a legacy server, or a dual-era one, that tells whoever names a session what is in it.
type diary struct {
	dual bool

	mu    sync.Mutex
	open  map[string]bool
	asked int // in sessions
}

// newDiary returns one, and its URL.
func newDiary(t *testing.T, dual bool) (*diary, string) {
	t.Helper()
	d := &diary{dual: dual, open: map[string]bool{}}
	return d, newFront(t, d.ServeHTTP)
}

// ServeHTTP implements http.Handler. Like many a legacy server, it looks at no header but the session's.
func (d *diary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &msg)
	session := r.Header.Get("Mcp-Session-Id")
	d.mu.Lock()
	defer d.mu.Unlock()
	result := `{"tools":[{"name":"secret of ` + session + `","inputSchema":{"type":"object"}}]}`
	switch {
	case msg.Method == "initialize":
		session = fmt.Sprint("diary-", len(d.open))
		d.open[session] = true
		w.Header().Set("Mcp-Session-Id", session)
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"diary","version":"1"}}`
	case d.dual && msg.Method == "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public"}`
	case !d.open[session]:
		w.WriteHeader(map[bool]int{true: http.StatusBadRequest, false: http.StatusNotFound}[session == ""])
		return
	case r.Method == http.MethodDelete:
		delete(d.open, session)
		return
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\n")
		return
	case msg.Method == "" || msg.ID == nil:
		d.asked++
		w.WriteHeader(http.StatusAccepted)
		return
	default:
		d.asked++
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
}

func (d *diary) requests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

// blinds are the settings with which a server over HTTP sees no client's credentials.
var blinds = map[string]func(*Options){
	"dropped":    func(o *Options) { o.DropAuthorization = true },
	"configured": func(o *Options) { o.Upstream.Header = http.Header{"Authorization": {"Bearer the bridge's"}} },
}

// exchanger gives whoever brings a token another one.
func exchanger(t *testing.T, server string) *authorize.Exchanger {
	t.Helper()
	var at string
	at = newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q,"authorization_endpoint":%[2]q,"response_types_supported":["code"]}`, at, at+"/token")
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token"}`, "for-"+r.FormValue("subject_token"))
	})
	e, err := authorize.NewExchanger(authorize.Options{Server: server, Issuer: at, ClientID: "gateway", ClientSecret: "hush",
		Resources: http.DefaultClient, Issuers: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// diarist is a person with a way to a mount.
func diarist(t *testing.T, url, token string) person { return person{t: t, url: url, token: token} }

// does sends a request of any method.
func (p person) does(method, session, body string, header ...string) (status int, text string) {
	p.t.Helper()
	req := request(p.t, method, p.url, session, body)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := wire.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all)
}

// findsNothing tries all that there is to do in somebody's session.
func (p person) findsNothing(what, session string) {
	p.t.Helper()
	for name, try := range map[string]struct{ method, body string }{
		"a call":         {http.MethodPost, listTools},
		"a tool":         {http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"grow","arguments":{}}}`},
		"an array":       {http.MethodPost, "[" + listTools + "]"},
		"an answer":      {http.MethodPost, `{"jsonrpc":"2.0","id":"q","result":{}}`},
		"a cancellation": {http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
		"a stream":       {http.MethodGet, ""},
		"the end":        {http.MethodDelete, ""},
	} {
		if status, body := p.does(try.method, session, try.body); status != http.StatusNotFound {
			p.t.Errorf("%s: %s: %d %s", what, name, status, body)
		}
	}
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	if status, body := p.does(http.MethodPost, session, modern, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"); strings.Contains(body, "secret of "+session) {
		p.t.Errorf("%s: a modern request: %d %s", what, status, body)
	}
}

// A server that sees no credentials cannot tell whose session is whose: whoever knew an id used it, listened to it and
// ended it.
func TestARelayedSessionIsOfWhoOpenedIt_H8(t *testing.T) {
	ways := maps.Clone(blinds)
	ways["exchanged"] = func(o *Options) { o.Behalf = &signin.Behalf{Exchange: exchanger(t, o.Upstream.URL)} }
	for name, blind := range ways {
		for era, dual := range map[string]bool{"legacy": false, "dual-era": true} {
			d, server := newDiary(t, dual)
			opt := over(server)
			opt.Relay = negotiate.RelayAlways
			blind(&opt)
			_, url := serve(t, opt)
			alice := diarist(t, url, "alice")
			session := alice.opens()
			before := d.requests()
			diarist(t, url, "mallory").findsNothing(name+", "+era, session)
			diarist(t, url, "").findsNothing(name+", "+era+", without credentials", session)
			if d.requests() != before {
				t.Errorf("%s, %s: a stranger's requests reached the session", name, era)
			}
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				if status, body := alice.does(method, session, map[string]string{http.MethodPost: listTools}[method]); status != http.StatusOK {
					t.Errorf("%s, %s: its own %s: %d %s", name, era, method, status, body)
				}
			}
			alice.findsNothing(name+", "+era+", after its end", session)
		}
	}
}

// Where the server sees the tokens it judges itself, also of sessions that the bridge knows nothing of.
func TestAServerThatSeesCredentialsJudgesItsSessionsItself_H8(t *testing.T) {
	_, server := newDiary(t, false)
	_, url := serve(t, over(server))
	session := diarist(t, url, "alice").opens()
	if status := diarist(t, url, "another").status(session); status != http.StatusOK {
		t.Errorf("another token: %d", status)
	}
	m, again := serve(t, over(server))
	m.Judge(t.Context())
	if status := diarist(t, again, "alice").status(session); status != http.StatusOK {
		t.Errorf("after a restart: %d", status)
	}
}

// What an earlier process or another replica has opened is known by the store alone; without one nobody knows whose it is.
func TestARelayedSessionIsKnownToOtherReplicasWithItsOwner_H8(t *testing.T) {
	for era, dual := range map[string]bool{"legacy": false, "dual-era": true} {
		for name, blind := range map[string]func(*Options){"blind": blinds["dropped"], "relay": func(*Options) {}} {
			for _, kept := range []bool{true, false} {
				_, server := newDiary(t, dual)
				shared := store.NewMemory(100)
				replica := func() string {
					opt := over(server)
					opt.Relay = negotiate.RelayAlways
					opt.Legacy = legacy.Options{StoreScope: "/mcp"}
					if kept {
						opt.Legacy.Store = shared
					}
					blind(&opt)
					m, url := serve(t, opt)
					m.Judge(t.Context())
					return url
				}
				one, two := replica(), replica()
				what := fmt.Sprintf("%s, %s, store %v", era, name, kept)
				session := diarist(t, one, "alice").opens()
				want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[kept || name == "relay" && !dual]
				if name == "blind" {
					diarist(t, two, "mallory").findsNothing(what, session)
				}
				if status := diarist(t, two, "alice").status(session); status != want {
					t.Errorf("%s: at another replica: %d", what, status)
				}
				if !kept {
					continue
				}
				if status, _ := diarist(t, two, "alice").does(http.MethodDelete, session, ""); status != http.StatusOK {
					t.Errorf("%s: its end: %d", what, status)
				}
				for _, at := range []string{one, two, replica()} {
					if status := diarist(t, at, "alice").status(session); status != http.StatusNotFound {
						t.Errorf("%s: after its end: %d", what, status)
					}
				}
			}
		}
	}
}

// A server that gives an id out again, as one that counts from the start does, gives it to somebody else.
func TestARelayedSessionThatTheServerHasLostIsNobodys(t *testing.T) {
	d, server := newDiary(t, false)
	opt := over(server)
	opt.DropAuthorization = true
	_, url := serve(t, opt)
	alice, mallory := diarist(t, url, "alice"), diarist(t, url, "mallory")
	session := alice.opens()
	d.mu.Lock()
	clear(d.open)
	d.mu.Unlock()
	if again := mallory.opens(); again != session || mallory.status(session) != http.StatusOK {
		t.Fatalf("it was %q, and is %q", session, again)
	}
	alice.findsNothing("the one before", session)
}

// The same where the bridge has the session, and its client a process or a connection at the server.
func TestACallInARelayedSessionIsOfWhoOpenedIt_H8(t *testing.T) {
	behindSSE := over(newOldServer(t))
	behindSSE.DropAuthorization = true
	for name, opt := range map[string]Options{"a command": process(t, sdkLegacy, 0), "over HTTP+SSE": behindSSE} {
		_, url := serve(t, opt)
		alice := diarist(t, url, "alice")
		session := alice.opens()
		diarist(t, url, "mallory").findsNothing(name, session)
		if status, body := alice.does(http.MethodPost, session, listTools); status != http.StatusOK || !strings.Contains(body, `"ask"`) {
			t.Errorf("%s: its own call: %d %s", name, status, body)
		}
		if status, _ := alice.does(http.MethodDelete, session, ""); status != http.StatusNoContent {
			t.Errorf("%s: its own end: %d", name, status)
		}
	}
}
