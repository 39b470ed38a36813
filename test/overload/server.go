package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// server is a modern-only server, or one of the clients' own era, with the tools echo, large,
// ask and stall.
type server struct {
	listener net.Listener
	http     *http.Server
	guarded  bool // it serves only clients whose names it knows
	legacy   bool
}

// request is what the server reads of one.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Size int `json:"size"`
		} `json:"arguments"`
	} `json:"params"`
}

const (
	discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"overload","version":"1"}},"ttlMs":3600000,"cacheScope":"public"}`
	listed = `{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[` +
		`{"name":"echo","inputSchema":{"type":"object"}},{"name":"large","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}}]}`
)

func startServer(guarded, legacy bool) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, err
	}
	s := &server{listener: l, guarded: guarded, legacy: legacy}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

func (s *server) url() string { return "http://" + s.listener.Addr().String() + "/mcp" }

func (s *server) stop() { _ = s.http.Close() }

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.guarded && !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer client") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var req request
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.legacy && s.opens(w, &req):
	case req.Params.Name == "stall":
		req.stall(w, r)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, req.result())
	}
}

// opens answers what a server of the clients' own era has an answer of its own to, and reports
// whether this was it.
func (s *server) opens(w http.ResponseWriter, req *request) bool {
	switch {
	case req.Method == "server/discover":
		w.WriteHeader(http.StatusBadRequest)
	case req.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", rand.Text())
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"overload","version":"1"}}}`, req.ID)
	case req.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

// stall begins an answer that does not end.
func (r *request) stall(w http.ResponseWriter, of *http.Request) {
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, r.ID)
	part := strings.Repeat("x", 64*kib)
	for range r.Params.Arguments.Size / len(part) {
		if _, err := io.WriteString(w, part); err != nil {
			return
		}
	}
	_ = http.NewResponseController(w).Flush()
	<-of.Context().Done()
}

func (r *request) result() string {
	switch {
	case r.Method == "server/discover":
		return discovered
	case r.Method == "tools/list":
		return listed
	case r.Params.Name == "ask":
		return `{"resultType":"input_required","requestState":"` + strings.Repeat("s", r.Params.Arguments.Size) + `","inputRequests":{"q":{"method":"elicitation/create",` +
			`"params":{"mode":"form","message":"Well?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}}}`
	}
	return `{"resultType":"complete","content":[{"type":"text","text":"` + strings.Repeat("x", max(r.Params.Arguments.Size, 2)) + `"}]}`
}
