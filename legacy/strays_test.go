package legacy

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// asked makes a call at a replica whose question is kept.
func (p *peer) asked(b *fakeBackend) *call {
	p.t.Helper()
	answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	k := <-b.held
	want(p.t, "a question", k.ask(time.Hour, nil), nil)
	<-answer
	return k
}

// TestTheEndOfASessionIsThatOfItsCallsElsewhere_G13: their process died, and nobody has come for them. What is here
// ends with the conversation.
func TestTheEndOfASessionIsThatOfItsCallsElsewhere_G13(t *testing.T) {
	for name, shared := range map[string]bool{"replicas": true, "one process after the other": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica = homeID
				opt.Store = alone{opt.Store, shared}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				p.asked(b)
				opt.Replica = neighbourID
				b = newFake()
				_, q := servePipe(t, opt, b)
				q.session, q.version = p.session, p.version
				want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				q.asked(b)
				want(t, "DELETE", q.do(q.request(http.MethodDelete, "")).StatusCode, 204)
				want(t, "given up by its record", b.last().givenUp, []string{`{}`})
			})
		})
	}
}

// TestASessionThatExpiresEndsItsCallsElsewhere_G13: of one process alone; several let its record expire.
func TestASessionThatExpiresEndsItsCallsElsewhere_G13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.IdleTimeout = homeID, 10*time.Minute
		opt.Store = alone{opt.Store, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b)
		opt.Replica = neighbourID
		b = newFake()
		_, q := servePipe(t, opt, b)
		q.session, q.version = p.session, p.version
		want(t, "a request", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		time.Sleep(20 * time.Minute)
		want(t, "given up by its record", b.last().givenUp, []string{`{}`})
	})
}

// alone is a store that one process has, or several.
type alone struct {
	store.Store
	shared bool
}

func (a alone) Watch(changed func(string)) bool { return a.Store.Watch(changed) && a.shared }

// TestASessionThatHasNothingElsewhereEndsWithoutALook: of one process alone, which began it.
func TestASessionThatHasNothingElsewhereEndsWithoutALook(t *testing.T) {
	opt := stored()
	c := &counting{Store: alone{opt.Store, false}}
	opt.Store = c
	_, p := serve(t, opt, newFake())
	p.initialize(mcp.V20250618)
	want(t, "DELETE", p.do(p.request(http.MethodDelete, "")).StatusCode, 204)
	want(t, "looks", c.loads, 0)
}
