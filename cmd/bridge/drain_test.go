package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
