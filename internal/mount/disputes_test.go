package mount

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/resource"
)

// person is a client that sends credentials.
type person struct {
	t     *testing.T
	url   string
	token string
}

func (p person) send(session, body string) (*http.Response, string) {
	p.t.Helper()
	req := request(p.t, http.MethodPost, p.url, session, body)
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := wire.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp, string(all)
}

// opens returns a session, "" when it was refused.
func (p person) opens() string {
	p.t.Helper()
	resp, _ := p.send("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	session := resp.Header.Get("Mcp-Session-Id")
	if session != "" {
		p.send(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return session
}

func (p person) status(session string) int {
	p.t.Helper()
	resp, _ := p.send(session, listTools)
	return resp.StatusCode
}

// loses waits until a session has ended. What asks may be the proof.
func (p person) loses(session string) {
	p.t.Helper()
	for ctx := patience(p.t); p.status(session) != http.StatusNotFound; runtime.Gosched() {
		if ctx.Err() != nil {
			p.t.Fatal("the session goes on")
		}
	}
}

// front puts something before a server, which it calls to have a request served.
func front(t *testing.T, server string, before func(w http.ResponseWriter, r *http.Request, method string, serve func(server string))) string {
	t.Helper()
	return newFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		method := ""
		for _, m := range []string{"server/discover", "initialize"} {
			if bytes.Contains(body, []byte(`"`+m+`"`)) {
				method = m
			}
		}
		before(w, r, method, func(to string) {
			at, _ := url.Parse(strings.TrimSuffix(to, "/"))
			httputil.NewSingleHostReverseProxy(at).ServeHTTP(w, r)
		})
	}) + "/"
}

// answering has a request of one client answered in place of its server, or by that.
type answering = func(w http.ResponseWriter, method string, serve func(string), server string)

// odd is how a server, or what is before it, can answer one client's credentials.
func odd(legacy, modern string) map[string]answering {
	all := map[string]answering{
		"another server that is modern": func(_ http.ResponseWriter, _ string, serve func(string), _ string) { serve(modern) },
		"another server that is legacy": func(_ http.ResponseWriter, _ string, serve func(string), _ string) { serve(legacy) },
		"a lost connection":             func(http.ResponseWriter, string, func(string), string) { panic(http.ErrAbortHandler) },
	}
	const anError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`
	for name, status := range map[string]int{"<html>": 400, anError: 400, "": 401, "large": 431, "slow down": 429, "down": 503} {
		refuse := func(w http.ResponseWriter, _ string, _ func(string), _ string) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, name)
		}
		all[name] = refuse
		all[name+" to server/discover only"] = func(w http.ResponseWriter, method string, serve func(string), server string) {
			if method == "server/discover" {
				refuse(w, method, serve, server)
				return
			}
			serve(server)
		}
	}
	return all
}

// What the server, or a proxy before it, answers the credentials of one client ends nobody
// else's sessions, whatever that is: a token that is too long for one of them suffices.
func TestOneClientsCredentialsEndNobodysSessions(t *testing.T) {
	legacy, dual, modern := newSDKServer(t, "2025-06-18").URL, newSDKServer(t).URL, peers.NewServer(t, peers.ServerOptions{}).URL
	for _, guarded := range []bool{false, true} {
		for kind, server := range map[string]string{"legacy": legacy, "dual-era": dual, "modern": modern} {
			for name, answer := range odd(legacy, modern) {
				at := front(t, server, func(w http.ResponseWriter, r *http.Request, method string, serve func(string)) {
					switch auth := r.Header.Get("Authorization"); {
					case strings.Contains(auth, "odd"):
						answer(w, method, serve, server)
					case guarded && auth == "":
						w.WriteHeader(http.StatusUnauthorized)
					default:
						serve(server)
					}
				})
				_, bridge := serve(t, over(at))
				victims := map[person]string{{t, bridge, "one"}: "", {t, bridge, "two"}: ""}
				if !guarded {
					victims[person{t, bridge, ""}] = ""
				}
				for who := range victims {
					victims[who] = who.opens()
				}
				person{t, bridge, "odd"}.opens()
				person{t, bridge, "odd, too"}.opens()
				for who, session := range victims {
					for range 2 { // what the first one would start, the second one would meet
						if got := who.status(session); got != http.StatusOK {
							t.Errorf("%s server, guarded %v, answers a stranger %s: %q then gets %d", kind, guarded, name, who.token, got)
						}
					}
				}
			}
		}
	}
}

// A server that answers nobody without credentials is known from its first client on.
func TestAGuardedServerIsJudgedByItsFirstClient_A16(t *testing.T) {
	at, server := newSDKServer(t, "2025-06-18").URL, new(atomic.Pointer[string])
	server.Store(&at)
	m, bridge := serve(t, over(behindAuthorization(t, server)))
	session := person{t, bridge, "one"}.opens()
	if m.HTTP.Holds(session) || !m.verdicts.legacyOnly.Load() || m.verdicts.disputed.Load() {
		t.Errorf("the session is the bridge's: %v", m.HTTP.Holds(session))
	}
	if got := (person{t, bridge, "two"}).status(session); got != http.StatusOK {
		t.Errorf("as everything else that has a session it is the server's, which answers %d", got)
	}
}

// So is one of HTTP+SSE that guards its stream and what is posted beside it, and has nothing where that is, as routers answer.
func TestAnOldServerThatGuardsItsStreamAloneIsJudgedByItsFirstClient_A16(t *testing.T) {
	old, err := url.Parse(newOldServer(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: wire.Transport, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: old.Host}) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.RawQuery == "":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer good":
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, bridge := serve(t, over(server.URL+"/sse"))
	for range 2 { // the first one, and one of whom the verdict is known
		if resp, text := (person{t, bridge, "bad"}).send("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("who brings no good token gets %d %s", resp.StatusCode, text)
		}
		good := person{t, bridge, "good"}
		session := good.opens()
		if resp, text := good.send(session, listTools); resp.StatusCode != http.StatusOK || !strings.Contains(text, "grow") {
			t.Errorf("the server's tools: %d %s", resp.StatusCode, text)
		}
	}
}

func behindAuthorization(t *testing.T, server *atomic.Pointer[string]) string {
	return front(t, "", func(w http.ResponseWriter, r *http.Request, _ string, serve func(string)) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve(*server.Load())
	})
}

// When such a server changes its era, each client's sessions end by what the server says to it.
func TestAGuardedServerThatChangesItsEra_A25(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18").URL, peers.NewServer(t, peers.ServerOptions{}).URL
	for name, change := range map[string][2]string{"to modern": {old, modern}, "to legacy": {modern, old}} {
		t.Run(name, func(t *testing.T) {
			now, becomesModern := new(atomic.Pointer[string]), change[1] == modern
			now.Store(&change[0])
			m, bridge := serve(t, over(behindAuthorization(t, now)))
			one, two := person{t, bridge, "one"}, person{t, bridge, "two"}
			a, b := one.opens(), two.opens()
			now.Store(&change[1])
			m.Prober.Forget() // as if its time had come
			next := one.opens()
			if got := m.HTTP.Holds(next); got != becomesModern || one.status(next) != http.StatusOK {
				t.Errorf("the next session is the bridge's: %v; it answers %d", got, one.status(next))
			}
			one.loses(a)
			two.loses(b)
			if next := two.opens(); two.status(next) != http.StatusOK || m.HTTP.Holds(next) != becomesModern {
				t.Error("who came first does not get a new session as the server is now")
			}
		})
	}
}

// Who finds out that a server has changed may have credentials: the bridge looks itself then,
// whatever it has kept, and everybody learns it.
func TestAClientWithCredentialsFindsOutForAll_A25(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18").URL, peers.NewServer(t, peers.ServerOptions{}).URL
	for name, change := range map[string][2]string{"to modern": {old, modern}, "to legacy": {modern, old}} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Pointer[string]
			now.Store(&change[0])
			m, bridge := serve(t, over(front(t, "", func(_ http.ResponseWriter, _ *http.Request, _ string, serve func(string)) { serve(*now.Load()) })))
			m.Judge(t.Context())
			anybody, newcomer := person{t, bridge, ""}, person{t, bridge, "new"}
			session := anybody.opens()
			now.Store(&change[1])
			if change[0] == modern {
				m.Prober.Forget() // as if its time had come: what it says is for everybody
			}
			if next := newcomer.opens(); newcomer.status(next) != http.StatusOK || m.HTTP.Holds(next) != (change[1] == modern) {
				t.Error("the newcomer is not served as the server is now")
			}
			anybody.loses(session)
			if next := anybody.opens(); m.HTTP.Holds(next) != (change[1] == modern) {
				t.Error("the others are not served as the server is now")
			}
		})
	}
}

// Where everybody signs in is what the server says to the bridge, by whichever way it looks.
func TestWhereOneSignsInIsWhatTheBridgeIsTold(t *testing.T) {
	server := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"resource":"http://`+r.Host+`/","scopes_supported":["`+r.URL.Path+`"]}`)
			return
		}
		w.Header().Set("Www-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/`+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`all"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	for name, look := range map[string]func(*Mount){
		"a verdict": func(m *Mount) { m.Judge(t.Context()) },
		"health":    func(m *Mount) { _ = m.Reach(t.Context()) },
	} {
		opt, clients := over(server), [2]*http.Client{{Transport: &http.Transport{}}, {Transport: &http.Transport{}}}
		opt.Resource = resource.Relay(resource.RelayOptions{Server: server, Path: "/mcp", Servers: clients[0], Issuers: clients[1], Log: zerolog.Nop()})
		m, bridge := serve(t, opt)
		look(m)
		person{t, bridge, "tenant/"}.opens()
		w := httptest.NewRecorder()
		m.Routes([]string{"/mcp"}, true)["/.well-known/oauth-protected-resource/mcp"].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", http.NoBody))
		if got := w.Body.String(); !strings.Contains(got, `["/all"]`) {
			t.Errorf("%s: everybody is told %s", name, got)
		}
	}
}
