package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/rawjson"
)

// talker is a modern server that repeats a secret wherever a server may write.
type talker struct {
	mu     sync.Mutex
	secret string
}

func (s *talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name, URI      string
			InputResponses json.RawMessage
		}
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &msg)
	s.mu.Lock()
	q := string(rawjson.AppendQuote(nil, s.secret))
	s.mu.Unlock()
	answer := `"result":{"resultType":"complete","content":[{"type":"text","text":` + q + `}],"structuredContent":{"x":` + q + `},"_meta":{"x":` + q + `}}`
	switch {
	case msg.Method == "server/discover":
		answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":60000,"cacheScope":"public","serverInfo":{"name":"talker","version":"1"}}`
	case msg.Method == "tools/list":
		answer = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"ask","description":` + q + `,"inputSchema":{"type":"object","description":` + q + `}}]}`
	case msg.Method == "resources/read":
		answer = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[{"uri":` + q + `,"text":` + q + `}]}`
	case msg.Params.Name == "ask" && msg.Params.InputResponses == nil:
		answer = `"result":{"resultType":"input_required","requestState":` + q + `,"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","message":` + q +
			`,"requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":` + q + `}}}}}}}`
	case msg.Params.Name == "fail":
		answer = `"error":{"code":-32603,"message":` + q + `,"data":` + q + `}`
	case msg.Params.Name == "break":
		http.Error(w, s.secret, http.StatusInternalServerError)
		return
	case msg.Params.Name == "bad":
		answer = `"result":{"resultType":"input_required","x":` + q + `}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Private", q)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, msg.ID, answer)
}

// TestNoSecretIsInAnyOutput: of params, answers, request state, tokens, header values and
// queries of URLs nothing is in a recording, a page, the log, a metric or a trace.
func TestNoSecretIsInAnyOutput(t *testing.T) {
	t.Cleanup(func() { setLevel("info") })
	var mu sync.Mutex
	var sent strings.Builder // spans, as they are on the wire
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent.Write(body)
	}))
	defer collector.Close()
	server := &talker{}
	upstream := httptest.NewServer(server)
	defer upstream.Close()
	const inURL = "a-secret-of-the-url"
	dir := t.TempDir()
	p := startWith(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_BSP_SCHEDULE_DELAY=10"}, "serve", "--upstream", upstream.URL+"/mcp?key="+inURL, "--listen", "127.0.0.1:0",
		"--admin.listen", "127.0.0.1:0", "--record", dir, "--log.level", "trace")
	url, token := adminOf(p)
	look := func() string { // everything that the admin listener shows
		var all strings.Builder
		pages := []string{"", "waiting", "ended?of=all", "sessions", "server", "recording", "recording.jsonl", "metrics", "api/v1/state", "api/v1/events"}
		_, list := seen(t, url+"sessions", token)
		for _, found := range regexp.MustCompile(`/session\?mount=[^"]*`).FindAllString(list, 3) {
			page := strings.TrimPrefix(strings.ReplaceAll(found, "&amp;", "&"), "/")
			pages = append(pages, page, strings.Replace(page, "session", "session.jsonl", 1))
		}
		for _, page := range pages {
			status, text := seen(t, url+page, token)
			if status != http.StatusOK {
				t.Errorf("%s: %d", page, status)
			}
			all.WriteString(text)
		}
		return all.String()
	}
	look()
	words := 0
	rapid.Check(t, func(r *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z][A-Za-z0-9+/]{14,40}`).Draw(r, "secret")
		if words++; words > 12 {
			return // each of them is a dozen of requests
		}
		server.mu.Lock()
		server.secret = secret
		server.mu.Unlock()
		tell(t, "http://"+p.address+"/mcp", secret)
		files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		recorded, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		spans := sent.String()
		mu.Unlock()
		for output, text := range map[string]string{"the pages": look(), "the recording": string(recorded), "the log": p.errors.String(), "a span": spans} {
			for _, one := range []string{secret, inURL} {
				if at := strings.Index(text, one); at >= 0 {
					r.Fatalf("%s has it: %.300s", output, text[max(0, at-200):])
				}
			}
		}
	})
	p.stop()
	_ = p.wait() // what it ended with is told elsewhere
	mu.Lock()
	defer mu.Unlock()
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	recorded, _ := os.ReadFile(files[0])
	for what, text := range map[string]string{"tools/call ask": sent.String(), `"inputResponses"`: string(recorded), "call ended": p.errors.String()} {
		if !strings.Contains(text, what) {
			t.Errorf("%q is nowhere: the test looked at nothing", what)
		}
	}
	if strings.Contains(sent.String()+string(recorded), inURL) {
		t.Error("the query of the upstream's URL is in the spans or the recording")
	}
}

// tell brings a secret to every place where a client may write one.
func tell(t *testing.T, url, secret string) {
	t.Helper()
	q := string(rawjson.AppendQuote(nil, secret))
	session := ""
	send := func(body string) *http.Response {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"?q="+strings.NewReplacer("+", "x", "/", "y").Replace(secret)+secret, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer " + secret, "X-Private": secret, "Cookie": "a=" + secret, "Baggage": "a=b"} {
			req.Header.Set(name, value)
		}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	done := func(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body); resp.Body.Close() }
	opened := send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"teller","version":"1"},"_meta":{"x":` + q + `}}}`)
	session = opened.Header.Get("Mcp-Session-Id")
	done(opened)
	done(send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	for _, name := range []string{"plain", "fail", "break", "bad"} {
		done(send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{"a":` + q + `},"_meta":{"x":` + q + `}}}`))
	}
	done(send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	done(send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///x?` + secret + `"}}`))
	done(send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + q + `}`))
	done(send(`{"jsonrpc":"2.0",` + q))
	asked := send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"a":` + q + `}}}`)
	defer done(asked)
	lines := bufio.NewScanner(asked.Body)
	for lines.Scan() {
		if id := regexp.MustCompile(`"id":("b-[^"]+")`).FindStringSubmatch(lines.Text()); id != nil {
			done(send(`{"jsonrpc":"2.0","id":` + id[1] + `,"result":{"action":"accept","content":{"a":` + q + `}}}`))
			return
		}
	}
	t.Fatal("no question came")
}
