package legacy

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

const (
	plain    = `{"jsonrpc":"2.0","id":7,"method":"echo"}`
	soonIdle = 6 * time.Second
)

// idling has sessions end soon, be they kept in the store of one process.
func idling(kept bool) (opt Options) {
	if kept {
		opt = stored()
		opt.Store = alone{opt.Store, false}
	}
	opt.IdleTimeout = soonIdle
	return opt
}

// answersLost answers a call whose client has lost its stream, after a while, and returns what has it fetch the end.
func (p *peer) answersLost(b *fakeBackend, lasts time.Duration) (fetch func()) {
	k := p.lost(b, false)
	last := fmt.Sprintf("%d-1", k.Address().Stream)
	time.Sleep(lasts)
	k.finish(`{}`)
	return func() { want(p.t, "what it fetches", len(readEvents(p.t, p.get(last)).rest()), 1) }
}

// TestIdleTimeBeginsWithTheEndOfTheLastUse_A33: sessions are looked at all the while, and a use may end just before a look.
func TestIdleTimeBeginsWithTheEndOfTheLastUse_A33(t *testing.T) {
	for name, use := range map[string]func(p *peer, b *fakeBackend, lasts time.Duration){
		"a call": func(p *peer, b *fakeBackend, lasts time.Duration) {
			answer := p.async(hold)
			k := <-b.held
			k.Address() // which begins the stream
			go func() { _, _ = io.Copy(io.Discard, (<-answer).Body) }()
			time.Sleep(lasts)
			k.finish(`{}`)
		},
		"a call whose client fetches the end": func(p *peer, b *fakeBackend, lasts time.Duration) {
			p.answersLost(b, lasts)()
		},
		"a stream": func(p *peer, b *fakeBackend, lasts time.Duration) {
			resp := p.get("")
			go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
			time.Sleep(lasts)
			_ = resp.Body.Close()
		},
	} {
		for engine, kept := range map[string]bool{"in memory": false, "in a store": true} {
			t.Run(name+", "+engine, func(t *testing.T) {
				for lasts := 5 * time.Second; lasts < 15*time.Second; lasts += 700 * time.Millisecond {
					synctest.Test(t, func(t *testing.T) {
						b := newFake()
						h, p := servePipe(t, idling(kept), b)
						p.initialize(mcp.V20251125)
						use(p, b, lasts)
						time.Sleep(soonIdle - time.Second)
						want(t, "before it is over", h.Sessions(), 1)
						want(t, fmt.Sprint("a request after ", lasts), p.status(plain), http.StatusOK)
						time.Sleep(2 * soonIdle)
						want(t, "when it is over", h.Sessions(), 0)
						want(t, "a request", p.status(plain), http.StatusNotFound)
					})
				}
			})
		}
	}
}

// TestASessionLastsAsLongAsAResponseThatNobodyHasFetched_A33, and no longer.
func TestASessionLastsAsLongAsAResponseThatNobodyHasFetched_A33(t *testing.T) {
	const retention = 10 * soonIdle
	for name, kept := range map[string]bool{"in memory": false, "in a store": true} {
		t.Run(name, func(t *testing.T) {
			for _, fetched := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					opt, b := idling(kept), newFake()
					opt.Retention = retention
					h, p := servePipe(t, opt, b)
					p.initialize(mcp.V20251125)
					fetch := p.answersLost(b, 0)
					time.Sleep(retention - time.Second)
					want(t, "while it is kept", h.Sessions(), 1)
					if kept {
						if own, _ := p.lasts(opt.Store); own == 0 {
							t.Error("its record has expired")
						}
					}
					if fetched {
						fetch()
					}
					time.Sleep(3 * soonIdle)
					want(t, "afterwards", h.Sessions(), 0)
				})
			}
		})
	}
}
