package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/testcert"
)

var discard = log.New(io.Discard, "", 0)

// certificateOf writes a test server's certificate to a file.
func certificateOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p *process) post(path, body string) (status int, text string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// slow starts an upstream whose tool calls wait for release, or for the bridge
// to give them up.
func slow(t *testing.T) (server *httptest.Server, called, release chan struct{}) {
	t.Helper()
	called, release = make(chan struct{}, 1), make(chan struct{})
	answers := canned(http.StatusNotFound, map[string]string{"server/discover": discovered,
		"tools/call": `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`})
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			body, _ := io.ReadAll(r.Body) // net/http notices a closed connection only then
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			called <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
				return
			}
		}
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server, called, release
}

type answer struct {
	status int
	text   string
}

func callInBackground(p *process) chan answer {
	got := make(chan answer, 1)
	go func() {
		status, text := p.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`)
		got <- answer{status, text}
	}()
	return got
}

func TestFirstSignalLetsRunningCallsFinish(t *testing.T) {
	server, called, release := slow(t)
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	got := callInBackground(p)
	<-called
	p.stop()
	p.expect("running calls may finish")
	if status, body := p.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "stopping") {
		t.Errorf("/readyz answers %d %s while draining", status, body)
	}
	close(release)
	if a := <-got; a.status != http.StatusOK || !strings.Contains(a.text, "done") {
		t.Errorf("the call got %d %s", a.status, a.text)
	}
	if err := p.wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

func TestCallsAreCutOffWhenTheTimeToDrainIsOver(t *testing.T) {
	server, called, _ := slow(t)
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--timeouts.drain", "1ms")
	got := callInBackground(p)
	<-called
	p.stop()
	p.expect("running calls were cut off")
	if err := p.wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	<-got
}

// What is cut off is answered before its connection ends, whoever speaks HTTP, over TLS, and whether the
// call is translated or passed on.
func TestCallsThatAreCutOffAreAnswered(t *testing.T) {
	const legacy = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`
	const modern = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	cert, key, _ := testcert.Write(t, t.TempDir(), 1)
	for name, flags := range map[string][]string{
		"lean": {"--http", "lean"}, "standard": {"--http", "standard"}, "TLS": {"--tls.cert", cert, "--tls.key", key},
	} {
		t.Run(name, func(t *testing.T) {
			server, called, _ := slow(t)
			p := start(t, append([]string{"serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--timeouts.drain", "1ms"}, flags...)...)
			const calls = 12
			got := make(chan string, calls)
			for i := range calls {
				body := legacy
				if i%2 == 0 {
					body = modern
				}
				go func() { got <- askCutOff(p, name == "TLS", body, body == modern) }()
			}
			for range calls {
				<-called
			}
			p.stop()
			for range calls {
				if text := <-got; !strings.Contains(text, `"id":1,"error":{"code":-32603`) || !strings.Contains(text, `"data":{"bridge":`) {
					t.Errorf("a call got %s", text)
				}
			}
			if err := p.wait(); err != nil {
				t.Errorf("the program ended with %v", err)
			}
		})
	}
}

// askCutOff makes a call and returns what came of it.
func askCutOff(p *process, secured bool, body string, modern bool) string {
	url := "http://" + p.address + "/mcp"
	if secured {
		url = "https://" + p.address + "/mcp"
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if modern {
		for name, value := range map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x"} {
			req.Header.Set(name, value)
		}
	}
	resp, err := trusting.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error() + " after " + string(text)
	}
	return string(text)
}

// trusting takes any certificate.
var trusting = &http.Client{Transport: &http.Transport{
	DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is about what comes of calls
}}

// The answers of calls that the end of the drain has ended leave with the end of their handlers, for which
// it waits a moment, and no longer: a client may read nothing.
func TestTheEndOfTheDrainWaitsForHandlers(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]edge.Options{"lean": {}, "standard": {StandardHTTP: true}} {
		t.Run(name, func(t *testing.T) {
			began, ended := make(chan struct{}, 2), make(chan struct{})
			opt.Listen, opt.Log = "127.0.0.1:0", zerolog.Nop()
			door, err := edge.Open(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				began <- struct{}{}
				if r.URL.Path == "/stuck" {
					<-r.Context().Done()
					return
				}
				select {
				case <-time.After(50 * time.Millisecond):
				case <-ended:
				}
				_, _ = io.WriteString(w, "last words")
			}), opt)
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- door.Serve() }()
			got := map[string]chan string{"/": make(chan string, 1), "/stuck": make(chan string, 1)}
			for path, got := range got {
				go func() {
					resp, err := client.Get("http://" + door.Addr().String() + path)
					if err != nil {
						got <- err.Error()
						return
					}
					defer resp.Body.Close()
					text, _ := io.ReadAll(resp.Body)
					got <- string(text)
				}()
				<-began
			}
			drain, cancel := context.WithTimeout(t.Context(), 0)
			defer cancel()
			before := time.Now()
			(&service{edge: door}).hangUpOn(drain)
			close(ended)
			if took := time.Since(before); took > 4*lastWords {
				t.Errorf("it took %s", took)
			}
			if text := <-got["/"]; text != "last words" {
				t.Errorf("the client got %q", text)
			}
			<-got["/stuck"]
			<-served
		})
	}
}
