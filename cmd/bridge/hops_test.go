package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
)

// hop is one connection between two of client, bridge and server: what makes the
// bridge use it, and what must have been used.
type hop struct {
	flags  []string
	major  int // of HTTP
	secure bool
	client *http.Client // downstream only
	url    string       // downstream: with the bridge's address for ADDRESS
}

// observed is what the far end of a hop saw.
type observed struct {
	mu           sync.Mutex
	majors       map[int]bool
	secure       bool
	certificates int // of the client
}

func (o *observed) note(major int, state *tls.ConnectionState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.majors == nil {
		o.majors = map[int]bool{}
	}
	o.majors[major] = true
	if state != nil {
		o.secure, o.certificates = true, len(state.PeerCertificates)
	}
}

func (o *observed) check(t *testing.T, hop string, want int, secure bool) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.majors) != 1 || !o.majors[want] || o.secure != secure {
		t.Errorf("%s: HTTP versions %v, TLS %v; want HTTP/%d, TLS %v", hop, o.majors, o.secure, want, secure)
	}
}

// upstreamHops starts the server once for each way to it.
func upstreamHops(t *testing.T, server *peers.Server) (hops map[string]hop, seen map[string]*observed) {
	t.Helper()
	hops, seen = map[string]hop{}, map[string]*observed{}
	handler := server.Handler()
	watched := func(name string) http.Handler {
		seen[name] = &observed{}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen[name].note(r.ProtoMajor, r.TLS)
			handler.ServeHTTP(w, r)
		})
	}
	begin := func(s *httptest.Server, tls bool) {
		s.Config.ErrorLog = discard
		if tls {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	}

	plain := httptest.NewUnstartedServer(watched("http"))
	begin(plain, false)
	hops["http"] = hop{flags: []string{"--upstream", plain.URL}, major: 1}

	own, cert := writePair(t, t.TempDir(), 7)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	secure := httptest.NewUnstartedServer(watched("https with certificates of both sides"))
	secure.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	begin(secure, true)
	hops["https with certificates of both sides"] = hop{major: 1, secure: true, flags: []string{
		"--upstream", secure.URL, "--upstream-tls.ca", certificateOf(t, secure), "--upstream-tls.cert", own.Cert, "--upstream-tls.key", own.Key,
	}}

	path := filepath.Join(t.TempDir(), "server.sock")
	socket := httptest.NewUnstartedServer(watched("socket"))
	socket.Listener.Close()
	var err error
	if socket.Listener, err = net.Listen("unix", path); err != nil {
		t.Fatal(err)
	}
	begin(socket, false)
	hops["socket"] = hop{major: 1, flags: []string{"--upstream", "http://localhost/mcp", "--upstream-socket", path}}
	return hops, seen
}

func downstreamHops(t *testing.T) map[string]hop {
	t.Helper()
	files, cert := writePair(t, t.TempDir(), 1)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	path := filepath.Join(t.TempDir(), "bridge.sock")
	prior := new(http.Protocols)
	prior.SetUnencryptedHTTP2(true)
	return map[string]hop{
		"http":  {flags: []string{"--listen", "127.0.0.1:0"}, major: 1, url: "http://ADDRESS/mcp", client: transport(t, &http.Transport{})},
		"https": {flags: []string{"--listen", "127.0.0.1:0", "--tls.cert", files.Cert, "--tls.key", files.Key}, major: 2, secure: true, url: "https://ADDRESS/mcp", client: transport(t, &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}})},
		"h2c":   {flags: []string{"--listen", "127.0.0.1:0"}, major: 2, url: "http://ADDRESS/mcp", client: transport(t, &http.Transport{Protocols: prior})},
		"socket": {flags: []string{"--listen", "unix:" + path}, major: 1, url: "http://localhost/mcp", client: transport(t, &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			},
		})},
	}
}

func transport(t *testing.T, tr *http.Transport) *http.Client {
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// noting tells which HTTP the responses came with.
type noting struct {
	http.RoundTripper
	seen *observed
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		n.seen.note(resp.ProtoMajor, resp.TLS)
	}
	return resp, err
}

// TestEveryHopCarriesQuestionsStreamsAndBothEras: {HTTP/1.1, HTTP/2 with TLS,
// HTTP/2 without, Unix socket} to the bridge, {HTTP/1.1, the same with TLS and a
// client certificate, Unix socket} to the server.
func TestEveryHopCarriesQuestionsStreamsAndBothEras(t *testing.T) {
	t.Parallel()
	server := peers.NewServer(t, peers.ServerOptions{})
	ups, seen := upstreamHops(t, server)
	for upName, up := range ups {
		for downName, down := range downstreamHops(t) {
			t.Run(downName+" to "+upName, func(t *testing.T) {
				p := start(t, append(append([]string{"serve"}, up.flags...), down.flags...)...)
				url := down.at(p.address)
				client := &observed{}
				wire := &http.Client{Transport: noting{down.client.Transport, client}}
				legacyOverHop(t, server, url, wire)
				modernOverHop(t, server, url, wire)
				client.check(t, "downstream", down.major, down.secure)
				seen[upName].check(t, "upstream", up.major, up.secure)
				if up.secure && seen[upName].certificates == 0 {
					t.Error("the server was shown no certificate")
				}
			})
		}
	}
}

func (h hop) at(address string) string { return strings.Replace(h.url, "ADDRESS", address, 1) }

// legacyOverHop: a question, progress, the standalone stream.
func legacyOverHop(t *testing.T, server *peers.Server, url string, wire *http.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	listens := server.Requests("subscriptions/listen")
	answers := map[string]any{"name": "Ada"}
	c, err := peers.Dial(ctx, url, peers.ClientOptions{Standalone: true, HTTP: wire,
		Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			content := map[string]any{}
			raw, _ := json.Marshal(p.RequestedSchema)
			var schema struct{ Properties map[string]any }
			_ = json.Unmarshal(raw, &schema)
			for name := range schema.Properties {
				content[name] = answers[name]
			}
			return peers.Accept(content)
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.Call(ctx, "greet", nil)
	if err != nil || peers.Text(res) != "Hello, Ada!" {
		t.Errorf("greet gives %+v, %v", res, err)
	}
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 2}, Meta: mcp.Meta{"progressToken": "p"}}); err != nil {
		t.Errorf("work: %v", err)
	}
	c.WaitFor(t, ctx, "notifications/progress", 1)
	server.Wait(t, ctx, "the bridge to listen", func() bool { return server.Requests("subscriptions/listen") > listens })
	server.ChangeTools()
	c.WaitFor(t, ctx, "notifications/tools/list_changed", 1)
}

// modernOverHop: a modern client of the SDK sees the same through the bridge as
// directly, streams and its own rounds included.
func modernOverHop(t *testing.T, server *peers.Server, url string, wire *http.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var results []string
	for _, at := range []struct {
		url    string
		client *http.Client
	}{{url, wire}, {server.URL, nil}} {
		c, err := peers.Dial(ctx, at.url, peers.ClientOptions{Version: "2026-07-28", HTTP: at.client,
			Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return peers.Accept(map[string]any{"name": "Ada"})
			}})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := c.ListTools(ctx, nil)
		if err != nil {
			t.Error(err)
		}
		res, err := c.Call(ctx, "greet", nil)
		if err != nil {
			t.Error(err)
		}
		if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "work", Arguments: map[string]any{"steps": 2}, Meta: mcp.Meta{"progressToken": "p"}}); err != nil {
			t.Error(err)
		}
		c.WaitFor(t, ctx, "notifications/progress", 2)
		text, _ := json.Marshal([]any{c.InitializeResult(), tools, res, c.Notifications("notifications/progress")})
		results = append(results, string(text))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if results[0] != results[1] {
		at := 0
		for at < len(results[0]) && at < len(results[1]) && results[0][at] == results[1][at] {
			at++
		}
		t.Errorf("through the bridge a modern client sees\n%.200s\nand directly\n%.200s", results[0][at:], results[1][at:])
	}
}

// TestModernClientsOfACommand: they are served in their own era, unless that is
// switched off. Then the refusal is that of a legacy server.
func TestModernClientsOfACommandAreServedOrFallBack_A11(t *testing.T) {
	for version, flags := range map[string][]string{"2026-07-28": nil, "2025-11-25": {"--modern", "refuse"}} {
		args := append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)
		p := start(t, append(append(args, "--"), cannedCommand(t)...)...)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c, err := peers.Dial(ctx, "http://"+p.address+"/mcp", peers.ClientOptions{Version: "2026-07-28", HTTP: client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if v := c.InitializeResult().ProtocolVersion; v != version {
			t.Errorf("%v: it settled on %s", flags, v)
		}
		if tools, err := c.ListTools(ctx, nil); err != nil || len(tools.Tools) != 1 {
			t.Errorf("%v: tools %+v, %v", flags, tools, err)
		}
	}
}
