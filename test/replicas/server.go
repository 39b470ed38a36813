//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// server is a modern-only server without memory and without faults: it writes down which
// round of which call ran.
type server struct {
	ledger *ledger
	http   *http.Server
	url    string
}

// request is what the server reads of one.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments plan   `json:"arguments"`
		State     string `json:"requestState"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Responses map[string]struct {
			Action  string            `json:"action"`
			Content map[string]string `json:"content"`
		} `json:"inputResponses"`
	} `json:"params"`
}

const (
	discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"replicas","version":"1"}},"ttlMs":3600000,"cacheScope":"public"}`
	listed = `{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[` +
		`{"name":"act","inputSchema":{"type":"object"}},` +
		`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}}]}`
)

func startServer(book *ledger) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{ledger: book, url: "http://" + l.Addr().String() + "/mcp"}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var req request
	if json.Unmarshal(body, &req) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	switch req.Method {
	case "server/discover":
		reply(w, req.ID, discovered)
	case "tools/list":
		reply(w, req.ID, listed)
	case "tools/call":
		s.call(w, &req)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, req.ID)
	}
}

// call serves one round.
func (s *server) call(w http.ResponseWriter, req *request) {
	p := &req.Params.Arguments
	round, ok := roundOf(req)
	if !ok {
		s.ledger.crossed(p.Nonce, "the server got another call's state or answer")
		reply(w, req.ID, `{"resultType":"complete","isError":true,"content":[]}`)
		return
	}
	s.ledger.ran(p.Nonce, round, req.Params.Name == toolAct)
	if p.Progress {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			event(w, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`,
				req.Params.Meta.Token, i+1, p.Nonce))
			time.Sleep(p.Work / 3)
		}
		event(w, response(req.ID, result(p, round)))
		return
	}
	time.Sleep(p.Work)
	reply(w, req.ID, result(p, round))
}

// roundOf returns which round a request is; false when what it carries is not of this call
// and round.
func roundOf(req *request) (int, bool) {
	p := &req.Params.Arguments
	if req.Params.State == "" {
		return 0, len(req.Params.Responses) == 0
	}
	for round := 1; round <= p.Rounds; round++ {
		if req.Params.State == state(p.Nonce, round) {
			given := req.Params.Responses["q"]
			return round, given.Action == "accept" && given.Content["value"] == answer(question(p.Nonce, round))
		}
	}
	return 0, false
}

// result asks the next question, or is the call's end.
func result(p *plan, round int) string {
	if round < p.Rounds {
		return fmt.Sprintf(`{"resultType":"input_required","requestState":%q,"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":%q,`+
			`"requestedSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}}}}}`, state(p.Nonce, round+1), question(p.Nonce, round+1))
	}
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, done(p))
}

func done(p *plan) string { return "done " + p.Nonce }

func response(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func reply(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, response(id, result))
}

func event(w http.ResponseWriter, data string) {
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}
