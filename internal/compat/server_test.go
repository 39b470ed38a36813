package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is a modern server whose answers a test writes down, by method. It
// records what arrives and judges every request by the rules that hold for all.
type server struct {
	t   *testing.T
	URL string

	mu      sync.Mutex
	answers map[string]answer
	seen    []*incoming
	ids     map[string]bool
	changed chan struct{}

	lenient bool // requests are not judged
}

// answer serves one request.
type answer func(x *incoming)

// incoming is one request as it arrived, and the way to answer it.
type incoming struct {
	Header http.Header
	Body   []byte
	ID     string // raw
	Method string
	Params json.RawMessage

	ctx  context.Context
	w    http.ResponseWriter
	open bool // an event stream was begun
}

// strayID is a session id that this server has no business giving.
const strayID = "stray-session"

const (
	metaPrefix = "io.modelcontextprotocol/"
	modern     = "2026-07-28"
)

// richDiscover offers everything that a modern server can offer.
const richDiscover = `{"resultType":"complete","ttlMs":0,"cacheScope":"private",` +
	`"supportedVersions":["2026-07-28"],"instructions":"Ask first.",` +
	`"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
	`"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{},` +
	`"experimental":{"x":{}},"extensions":{"com.example/ui":{}}},` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"2.0","title":"Modern server",` +
	`"description":"Only modern.","websiteUrl":"https://example.com","icons":[{"src":"https://example.com/i.png"}]},"com.example/k":1}}`

func newServer(t *testing.T) *server {
	s := &server{t: t, answers: map[string]answer{}, ids: map[string]bool{}}
	s.on("server/discover", result(richDiscover))
	s.on("subscriptions/listen", listenForever)
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.CloseClientConnections() // ends listens, which nothing else would
		srv.Close()
	})
	s.URL = srv.URL + "/mcp"
	return s
}

// on scripts a method: the first request gets the first answer, and so on; the
// last answer stands for all later ones.
func (s *server) on(method string, answers ...answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	s.answers[method] = func(x *incoming) {
		s.mu.Lock()
		next := answers[min(n, len(answers)-1)]
		n++
		s.mu.Unlock()
		next(x)
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	x := &incoming{Header: r.Header, Body: body, ctx: r.Context(), w: w}
	w.Header().Set("Mcp-Session-Id", strayID) // to be ignored
	var msg struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if err != nil || json.Unmarshal(body, &msg) != nil {
		if s.lenient {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		s.t.Errorf("the server got no JSON object (E-18): %s", body)
		return
	}
	x.ID, x.Method, x.Params = string(msg.ID), msg.Method, msg.Params
	if !s.lenient {
		s.judge(r, x)
	}
	s.mu.Lock()
	s.seen = append(s.seen, x)
	serve := s.answers[x.Method]
	s.wake()
	s.mu.Unlock()
	if serve == nil {
		x.fail(-32601, "no such method", "")
		return
	}
	serve(x)
}

// judge checks what holds for every request that reaches a modern server over
// HTTP, so that each exchange of this package checks it.
func (s *server) judge(r *http.Request, x *incoming) {
	wrong := func(format string, args ...any) {
		s.t.Errorf("upstream %s: %s\n%s", x.Method, fmt.Sprintf(format, args...), x.Body)
	}
	if r.Method != http.MethodPost {
		wrong("E-43: HTTP %s", r.Method)
	}
	if x.ID == "" || x.ID == "null" {
		wrong("B-11: a notification or response was posted")
	}
	s.mu.Lock()
	if s.ids[x.ID] {
		wrong("B-2, D-I1: id %s was used before", x.ID)
	}
	s.ids[x.ID] = true
	s.mu.Unlock()
	h := r.Header
	for _, name := range []string{"Mcp-Session-Id", "Last-Event-Id", "Cookie", "Origin"} {
		if h.Get(name) != "" { // A-32, P-5, H-12
			wrong("P-5: header %s: %s", name, h.Get(name))
		}
	}
	if h.Get("Content-Type") != "application/json" || !strings.Contains(h.Get("Accept"), "text/event-stream") {
		wrong("B.2: Content-Type %q, Accept %q", h.Get("Content-Type"), h.Get("Accept"))
	}
	if h.Get("Mcp-Method") != x.Method {
		wrong("B-9: Mcp-Method %q", h.Get("Mcp-Method"))
	}
	switch x.Method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result":
		wrong("P-5: a legacy method")
	}
	s.judgeMeta(h, x, wrong)
}

func (s *server) judgeMeta(h http.Header, x *incoming, wrong func(string, ...any)) {
	if got := x.meta("protocolVersion"); got != `"`+modern+`"` || h.Get("Mcp-Protocol-Version") != modern {
		wrong("A-21: version %s in _meta, %q in the header", got, h.Get("Mcp-Protocol-Version"))
	}
	if !strings.HasPrefix(x.meta("clientCapabilities"), "{") { // A.5: required on every request, B-3
		wrong("A.5: no clientCapabilities")
	}
	if member(x.Params, "task") != "" {
		wrong("P-5, B-7: params.task")
	}
}

// meta returns a raw member of the request's _meta that the protocol owns.
func (x *incoming) meta(name string) string { return member(x.Params, "_meta", metaPrefix+name) }

// wake tells waiters that something changed. The caller holds mu.
func (s *server) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// requests returns what arrived so far of a method.
func (s *server) requests(method string) []*incoming {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seen), func(x *incoming) bool { return x.Method != method })
}

// last returns the latest request of a method.
func (s *server) last(method string) *incoming {
	s.t.Helper()
	all := s.requests(method)
	if len(all) == 0 {
		s.t.Fatalf("no %s reached the server", method)
	}
	return all[len(all)-1]
}

// wait blocks until n requests of a method arrived.
func (s *server) wait(method string, n int) []*incoming {
	s.t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if got := s.requests(method); len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-limit:
			s.t.Fatalf("%d × %s did not reach the server, only %d", n, method, len(s.requests(method)))
		}
	}
}

// patience bounds every wait of this package's tests.
const patience = 20 * time.Second
