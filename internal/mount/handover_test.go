package mount

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// deaf is a legacy server that answers initialize when it is told to, and takes nothing
// after that. It is its own line.
type deaf struct {
	inbox  relay.Inbox
	goOn   chan struct{}
	closed chan struct{}
}

func (d *deaf) Connect(_ downstream.Caller, inbox relay.Inbox) (relay.Line, error) {
	d.inbox = inbox
	return d, nil
}

func (d *deaf) Send(_ downstream.Caller, msg *jsonrpc.Message, _ []byte) error {
	if msg.Method == mcp.MethodInitialize {
		<-d.goOn
		d.inbox.Receive([]byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`))
		return nil
	}
	<-d.closed
	return errors.New("the line has ended")
}

func (d *deaf) Close() { close(d.closed) }

// bridged is the bridge's part of a session.
type bridged struct{ downstream.Conversation }

func (bridged) Version() mcp.Version { return "2025-06-18" }

func (bridged) Close(error) {}

func (bridged) Notify(downstream.Caller, jsonrpc.Message) {}

func (bridged) Answer(downstream.Caller, jsonrpc.Message) error { return downstream.ErrNotHere }

func (bridged) Knows(downstream.Caller, jsonrpc.ID) bool { return false }

func (bridged) Serve(context.Context, downstream.Caller, downstream.Request, downstream.Reply) {}

// unanswered is a Reply, and closed with its end.
type unanswered struct {
	downstream.Reply
	over chan struct{}
}

func (u unanswered) Refuse(*downstream.Refusal) bool { return false }

func (u unanswered) Finish(downstream.Message) { close(u.over) }

func (u unanswered) Abandon() { close(u.over) }

// A session ends while what waited is handed over to a server that takes nothing: neither
// its client's requests nor the end of the mount wait for that server.
func TestASessionEndsWhileItIsHandedOverToAServerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &deaf{goOn: make(chan struct{}), closed: make(chan struct{})}
		h := &handover{work: gate.New(), relay: relay.New(relay.Options{Server: server}), undecided: map[*undecided]struct{}{}}
		initialize, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`))
		u := &undecided{Conversation: bridged{}, relay: h.relay, work: h.work, dismissed: h.dismiss, opened: initialize}
		u.begin()
		u.decide(true)
		out := unanswered{over: make(chan struct{})}
		request, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		u.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(request), out)
		close(server.goOn)
		synctest.Wait() // it is being handed over
		u.Close(errors.New("over"))
		h.close()
		<-out.over
	})
}

// What waits for its server is taken back by who asked for it.
func TestNobodyElseWithdrawsWhatWaitsForItsServer_H6(t *testing.T) {
	owner, stranger := downstream.Caller{Principal: "ada"}, downstream.Caller{Principal: "eve", Unproven: true}
	request, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	withdrawn, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	ready, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	out := unanswered{over: make(chan struct{})}
	u := &undecided{Conversation: bridged{}}
	u.begin()
	u.held = []*entrusted{{Reply: out, caller: owner, req: downstream.NewRequest(request)}}
	u.Notify(stranger, withdrawn)
	u.Notify(stranger, ready)
	if u.Knows(stranger, "1") || !u.Knows(owner, "1") || len(u.held) != 1 || u.begun != nil {
		t.Error("it is a stranger's")
	}
	u.Notify(owner, ready)
	u.Notify(owner, withdrawn)
	if <-out.over; u.begun == nil {
		t.Error("its client is not ready")
	}
}

// hasty is the server's part of a session. It asks the client at once, and has its answer, or is cancelled, before
// anything else happens.
type hasty struct {
	bridged
	served            func()
	answers, withdrew int
}

func (s *hasty) Serve(context.Context, downstream.Caller, downstream.Request, downstream.Reply) {
	s.served()
}

func (s *hasty) Answer(downstream.Caller, jsonrpc.Message) error {
	s.answers++
	return nil
}

func (s *hasty) Notify(_ downstream.Caller, msg jsonrpc.Message) {
	if msg.Method == mcp.NotificationCancelled {
		s.withdrew++
	}
}

// What waited is the server's as soon as that has it, though more may wait behind it.
func TestTheServerHearsOfWhatItWasHandedBeforeTheRest_A16(t *testing.T) {
	request, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`))
	answer, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}`))
	withdrawn, _ := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	u := &undecided{Conversation: bridged{}}
	u.begin()
	u.held = []*entrusted{{req: downstream.NewRequest(request)}}
	server := &hasty{}
	server.served = func() {
		if err := u.Answer(downstream.Caller{}, answer); err != nil || server.answers != 1 {
			t.Errorf("the server gets %d answers to its question: %v", server.answers, err)
		}
		u.Notify(downstream.Caller{}, withdrawn)
		if server.withdrew != 1 {
			t.Errorf("the server hears of %d cancellations", server.withdrew)
		}
	}
	if !u.handOver(server) {
		t.Error("it is not handed over")
	}
}

// counting is a caller who says nothing.
type counting struct {
	upstream.Caller
	asked int
}

func (c *counting) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	c.asked++
	return nil, &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}
}

// Requests may still come while the mount ends, and begin nothing that it would have to wait for.
func TestNobodyIsAskedForASessionOnceTheMountHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{}
		v := &verdicts{prober: negotiate.NewProber(negotiate.Options{Timeout: time.Second}), caller: server}
		v.disputed.Store(true)
		h := &handover{verdicts: v, work: gate.New(), relay: relay.New(relay.Options{Server: &deaf{}}), relying: map[*relying]struct{}{}}
		conv := h.enlist(&relying{Conversation: bridged{}}, false)
		h.close()
		conv.Serve(t.Context(), downstream.Caller{}, downstream.Request{}, unanswered{})
		synctest.Wait()
		if server.asked > 0 {
			t.Errorf("the server was asked %d times", server.asked)
		}
	})
}
