package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// server is a modern-only server with the tools act and read. It does to each round
// what the call's plan says, and writes down what ran.
type server struct {
	ledger *ledger
	key    []byte

	mu       sync.Mutex
	listener net.Listener
	http     *http.Server
	address  string
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
	discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"chaos","version":"1"}},"ttlMs":3600000,"cacheScope":"public"}`
	listed = `{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[` +
		`{"name":"act","inputSchema":{"type":"object"}},` +
		`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}}]}`
)

// start listens, at the first time on a free port, later on the same one.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.listener, s.address = l, l.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func(srv *http.Server) { _ = srv.Serve(l) }(s.http)
	return nil
}

// stop ends the server and every connection at once.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.http.Close()
}

func (s *server) url() string { return "http://" + s.address + "/mcp" }

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
		s.call(w, r, &req)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, req.ID)
	}
}

// call serves one round: it checks what came, lets it run, and answers as planned.
func (s *server) call(w http.ResponseWriter, r *http.Request, req *request) {
	p := &req.Params.Arguments
	round, ok := s.round(p, req)
	if !ok {
		s.ledger.crossed(p.Nonce, "the server got another call's state or answer")
		reply(w, req.ID, `{"resultType":"complete","isError":true,"content":[]}`)
		return
	}
	fault := faultNone
	if round == p.At {
		fault = p.Fault
	}
	if fault == faultBusy && s.ledger.first(p.Nonce, "busy") {
		w.Header().Set("Retry-After", "0")
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	if fault != faultLogin {
		s.ledger.ran(p.Nonce, round, req.Params.Name == toolAct)
	}
	result := s.result(p, round)
	if fault == faultLogin {
		s.ledger.spread()
		w.Header().Set("WWW-Authenticate", `Bearer realm="chaos"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if p.Progress == 0 && fault != faultEnd {
		s.answer(w, r, fault, req.ID, result)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range p.Progress {
		event(w, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`, req.Params.Meta.Token, i+1, p.Nonce))
	}
	switch fault {
	case faultEnd:
		return
	case faultHang:
		<-r.Context().Done()
		return
	case faultReset, faultHalf:
		abort(w)
		return
	case faultGarbage:
		result = "{"
	case faultID:
		req.ID = json.RawMessage(`"nobody"`)
	}
	event(w, response(req.ID, result))
}

// round returns which round a request is; false when what it carries is not of this
// call and round.
func (s *server) round(p *plan, req *request) (int, bool) {
	if req.Params.State == "" {
		return 0, len(req.Params.Responses) == 0
	}
	for round := 1; round <= p.Rounds; round++ {
		if req.Params.State == s.state(p.Nonce, round) {
			given := req.Params.Responses["q"]
			return round, given.Action == "accept" && given.Content["value"] == answer(question(p.Nonce, round))
		}
	}
	return 0, false
}

func (s *server) state(nonce string, round int) string {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%s %d", nonce, round)
	return hex.EncodeToString(mac.Sum(nil))
}

// result asks the next question, or is the call's end.
func (s *server) result(p *plan, round int) string {
	if round < p.Rounds {
		return fmt.Sprintf(`{"resultType":"input_required","requestState":%q,"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":%q,`+
			`"requestedSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}}}}}`, s.state(p.Nonce, round+1), question(p.Nonce, round+1))
	}
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"done %s %s"}]}`, p.Nonce, strings.Repeat("x", p.Size))
}

// answer writes a JSON response, or what the fault makes of it.
func (s *server) answer(w http.ResponseWriter, r *http.Request, fault string, id json.RawMessage, result string) {
	switch fault {
	case faultReset:
		abort(w)
	case faultHalf:
		text := response(id, result)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text[:len(text)/2])
		abort(w)
	case faultGarbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0",`)
	case faultID:
		reply(w, json.RawMessage(`"nobody"`), result)
	case faultEmpty:
		w.Header().Set("Content-Type", "application/json")
	case faultHang:
		<-r.Context().Done()
	case faultStatus:
		http.Error(w, "broken", http.StatusInternalServerError)
	case faultClose:
		w.Header().Set("Connection", "close")
		reply(w, id, result)
	case faultSurplus:
		s.ledger.spread()
		surplus(w, response(id, result))
	case faultSlow:
		time.Sleep(30 * time.Millisecond)
		reply(w, id, result)
	default:
		reply(w, id, result)
	}
}

// surplus answers, and then once more what nobody asked for, on the same connection.
func surplus(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	const stray = `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"somebody else's"}}`
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	time.Sleep(time.Millisecond)
	fmt.Fprintf(conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(stray), stray)
	time.Sleep(5 * time.Millisecond)
}

// abort resets the connection.
func abort(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

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
