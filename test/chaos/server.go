package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/test/calls"
)

// server is a modern-only server with the tools act and read. It does to each round
// what the call's plan says, and writes down what ran.
type server struct {
	ledger *ledger

	mu       sync.Mutex
	listener net.Listener
	http     *http.Server
	address  string
}

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
	s.http = &http.Server{Handler: calls.Handler("chaos", s.call), ReadHeaderTimeout: 10 * time.Second}
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

// call serves one round: it checks what came, lets it run, and answers as planned.
func (s *server) call(w http.ResponseWriter, r *http.Request, req *calls.Request[plan]) {
	p := &req.Params.Arguments
	round, ok := req.Round(p.Nonce, p.Rounds)
	if !ok {
		s.ledger.crossed(p.Nonce, "the server got another call's state or answer")
		calls.Strayed(w, req.ID)
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
		s.ledger.ran(p.Nonce, round, req.Params.Name == calls.Act)
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
	req.Progress(w, p.Nonce, p.Progress, nil)
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
	calls.Event(w, calls.Response(req.ID, result))
}

// result asks the next question, or is the call's end.
func (s *server) result(p *plan, round int) string {
	if round < p.Rounds {
		return calls.Ask(p.Nonce, round+1)
	}
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"done %s %s"}]}`, p.Nonce, strings.Repeat("x", p.Size))
}

// answer writes a JSON response, or what the fault makes of it.
func (s *server) answer(w http.ResponseWriter, r *http.Request, fault string, id json.RawMessage, result string) {
	switch fault {
	case faultReset:
		abort(w)
	case faultHalf:
		text := calls.Response(id, result)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text[:len(text)/2])
		abort(w)
	case faultGarbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0",`)
	case faultID:
		calls.Reply(w, json.RawMessage(`"nobody"`), result)
	case faultEmpty:
		w.Header().Set("Content-Type", "application/json")
	case faultHang:
		<-r.Context().Done()
	case faultStatus:
		http.Error(w, "broken", http.StatusInternalServerError)
	case faultClose:
		w.Header().Set("Connection", "close")
		calls.Reply(w, id, result)
	case faultSurplus:
		s.ledger.spread()
		surplus(w, calls.Response(id, result))
	case faultSlow:
		time.Sleep(30 * time.Millisecond)
		calls.Reply(w, id, result)
	default:
		calls.Reply(w, id, result)
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
