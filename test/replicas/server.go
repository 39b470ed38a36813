//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/test/calls"
)

// server is a modern-only server without memory and without faults: it writes down which
// round of which call ran.
type server struct {
	ledger *ledger
	http   *http.Server
	url    string
}

func startServer(book *ledger) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{ledger: book, url: "http://" + l.Addr().String() + "/mcp"}
	s.http = &http.Server{Handler: calls.Handler("replicas", s.call), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

// call serves one round.
func (s *server) call(w http.ResponseWriter, _ *http.Request, req *calls.Request[plan]) {
	p := &req.Params.Arguments
	round, ok := req.Round(p.Nonce, p.Rounds)
	if !ok {
		s.ledger.crossed(p.Nonce, "the server got another call's state or answer")
		calls.Strayed(w, req.ID)
		return
	}
	s.ledger.ran(p.Nonce, round, req.Params.Name == calls.Act)
	if p.Progress {
		w.Header().Set("Content-Type", "text/event-stream")
		req.Progress(w, p.Nonce, 3, func() { time.Sleep(p.Work / 3) })
		calls.Event(w, calls.Response(req.ID, result(p, round)))
		return
	}
	time.Sleep(p.Work)
	calls.Reply(w, req.ID, result(p, round))
}

// result asks the next question, or is the call's end.
func result(p *plan, round int) string {
	if round < p.Rounds {
		return calls.Ask(p.Nonce, round+1)
	}
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, done(p))
}

func done(p *plan) string { return "done " + p.Nonce }
