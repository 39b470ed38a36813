package legacy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/rs/zerolog"
)

// lost makes a call whose stream its client loses when it knows where to go on, be it that it was told to come back.
func (p *peer) lost(b *fakeBackend, polled bool) *call {
	p.t.Helper()
	answer := p.async(hold)
	k := <-b.held
	k.Address() // which begins the stream
	resp := <-answer
	if polled {
		_, _ = io.ReadAll(resp.Body)
	} else {
		readEvents(p.t, resp).next()
		_ = resp.Body.Close()
	}
	synctest.Wait()
	want(p.t, "attached", k.Attached(), false)
	return k
}

// ended runs a stop in the background.
func ended(stop func() error) <-chan error {
	over := make(chan error, 1)
	go func() { over <- stop() }()
	synctest.Wait()
	return over
}

var owedEnd = []string{`1-2|{"jsonrpc":"2.0","id":1,"result":{}}`}

// The call was executed, and its client has been told, or is about, to come back.
func TestAStopWaitsForClientsThatAreToFetchTheEndOfACall_E8(t *testing.T) {
	for name, poll := range map[string]time.Duration{"told to come back": time.Second, "lost its stream": 0} {
		for at, before := range map[string]bool{"ended before the stop": true, "ended during the stop": false} {
			t.Run(name+", "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newFake()
					h, p := servePipe(t, Options{Poll: poll, PollPause: 2 * time.Second}, b)
					p.initialize(mcp.V20251125)
					k := p.lost(b, poll > 0)
					if before {
						k.finish(`{}`)
					}
					down := ended(func() error { return h.Shutdown(t.Context()) })
					if !before {
						k.finish(`{}`)
					}
					time.Sleep(2 * time.Second)
					want(t, "the rest", readEvents(t, p.get("1-1")).rest(), owedEnd)
					fetched := time.Now()
					want(t, "the end", <-down, error(nil))
					if took := time.Since(fetched); took > fetchedEvery {
						t.Errorf("it came %v after all was fetched", took)
					}
				})
			})
		}
	}
}

// Who does not come back holds a stop up for as long as it was told to stay away, and ten seconds.
func TestAStopDoesNotWaitForClientsThatCannotBeExpected_E8(t *testing.T) {
	for name, tc := range map[string]struct {
		ago, drain, took time.Duration
		late             bool
	}{
		"who left a moment ago":     {0, time.Minute, 12 * time.Second, false},
		"who left five minutes ago": {5 * time.Minute, time.Minute, 0, false},
		"the drain is over first":   {0, 5 * time.Second, 5 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake()
				h, p := servePipe(t, Options{PollPause: 2 * time.Second, Retention: time.Hour}, b)
				p.initialize(mcp.V20251125)
				k := p.lost(b, false)
				time.Sleep(tc.ago)
				k.finish(`{}`)
				ctx, cancel := context.WithTimeout(t.Context(), tc.drain)
				defer cancel()
				began := time.Now()
				err := h.Shutdown(ctx)
				want(t, "the drain was over", errors.Is(err, context.DeadlineExceeded), tc.late)
				if took := time.Since(began); took < tc.took || took > tc.took+time.Second {
					t.Errorf("it took %v and not %v", took, tc.took)
				}
			})
		})
	}
}

func TestAStopDoesNotWaitForWhatAStoreKeeps_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		h, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		k := p.lost(b, false)
		want(t, "a question", k.ask(time.Hour, nil), nil)
		k.finish(`{}`)
		began := time.Now()
		want(t, "the end", h.Shutdown(t.Context()), error(nil))
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What this process has no room for any more its client fetches from the store.
func TestWhatAStoreKeepsIsFetchedThoughItWasForgottenHere_E20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		opt, b := stored(), newFake()
		opt.MaxInFlight, opt.MaxUnloaded, opt.Logger = 2, 1, zerolog.New(&log)
		h, p := servePipe(t, opt, b)
		p.initialize(mcp.V20251125)
		var streams []uint64
		for n := range 9 {
			answer := p.async(hold)
			k := <-b.held
			streams = append(streams, k.Address().Stream)
			_ = (<-answer).Body.Close()
			synctest.Wait()
			want(t, "a question", k.ask(time.Hour, nil), nil)
			k.finish(fmt.Sprintf(`{"n":%d}`, n))
		}
		want(t, "the first one is here", p.live(h).Streams().Find(streams[0]) != nil, false)
		want(t, "the log", log.String(), "")
		for n, stream := range streams {
			got := readEvents(t, p.get(fmt.Sprintf("%d-2", stream))).rest() // it has had the question
			want(t, "fetched", got, []string{fmt.Sprintf(`%d-3|{"jsonrpc":"2.0","id":1,"result":{"n":%d}}`, stream, n)})
		}
	})
}

// A call that its client has cancelled has no end, and whoever comes back with the id of the last event has had all there is.
func TestAStopDoesNotWaitForWhoIsOwedNothing_E8(t *testing.T) {
	for name, over := range map[string]func(p *peer, k *call){
		"the call was cancelled": func(_ *peer, k *call) {
			k.Send([]byte(note))
			k.Abandon()
		},
		"the client has everything": func(p *peer, k *call) {
			k.finish(`{}`)
			want(p.t, "what follows", p.get("1-2").StatusCode, http.StatusNoContent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake()
				h, p := servePipe(t, Options{Poll: time.Second, PollPause: 2 * time.Second}, b)
				p.initialize(mcp.V20251125)
				over(p, p.lost(b, true))
				began := time.Now()
				want(t, "the end", h.Shutdown(t.Context()), error(nil))
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Where the last call of a batch is cancelled the answers to the others are owed all the same.
func TestAStopWaitsForTheAnswersOfABatchWhoseLastCallWasCancelled_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20250326)
		answer := p.async(`[{"jsonrpc":"2.0","id":1,"method":"hold"},{"jsonrpc":"2.0","id":2,"method":"hold"}]`)
		one, two := <-b.held, <-b.held
		one.Send([]byte(note))
		resp := <-answer
		readEvents(t, resp).next()
		_ = resp.Body.Close()
		synctest.Wait()
		one.finish(`{}`)
		two.Abandon()
		down := ended(func() error { return h.Shutdown(t.Context()) })
		time.Sleep(2 * time.Second)
		want(t, "the rest", readEvents(t, p.get("1-1")).rest(), []string{`1-2|{"jsonrpc":"2.0","id":` + string(one.req.ID) + `,"result":{}}`})
		want(t, "the end", <-down, error(nil))
	})
}

// The client has left a moment ago, which nobody has noticed yet: what is written goes nowhere.
func TestTheEndOfACallIsNoneForAClientThatHasJustLeft_E8(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{ParkAfter: time.Hour}, b)
	var conn net.Conn
	dialing := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		c, err = new(net.Dialer).DialContext(ctx, network, addr)
		conn = c
		return c, err
	}}
	t.Cleanup(dialing.CloseIdleConnections)
	p.initialize(mcp.V20251125)
	leaves := *p
	leaves.client = &http.Client{Transport: dialing}
	answer := leaves.async(hold)
	k := <-b.held
	k.Send([]byte(note))
	stream := readEvents(t, <-answer)
	stream.next()
	stream.next()
	h.refuse()
	_ = conn.Close()
	down := make(chan error, 1)
	go func() { down <- h.Shutdown(t.Context()) }()
	k.finish(`{}`)
	want(t, "the rest", readEvents(t, p.get("1-2")).rest(), []string{`1-3|{"jsonrpc":"2.0","id":1,"result":{}}`})
	want(t, "the end", <-down, error(nil))
}

func TestARetiredEndpointKeepsTheSessionsThatAreToFetchTheEndOfACall_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, owed := servePipe(t, Options{Poll: time.Second, PollPause: 2 * time.Second}, b)
		away, idle := *owed, *owed
		owed.initialize(mcp.V20251125)
		owed.lost(b, true).finish(`{}`)
		away.initialize(mcp.V20251125)
		away.lost(b, true).finish(`{}`)
		idle.initialize(mcp.V20251125)
		began := time.Now()
		down := retire(t, h)
		want(t, "an idle session is here", h.Holds(idle.session), false)
		want(t, "one that is to come back is here", h.Holds(owed.session), true)
		time.Sleep(2 * time.Second)
		want(t, "the rest", readEvents(t, owed.get("1-1")).rest(), owedEnd)
		time.Sleep(2 * vacateEvery)
		want(t, "it is here then", h.Holds(owed.session), false)
		want(t, "the other one is here", h.Holds(away.session), true)
		want(t, "the end", <-down, error(nil))
		if took := time.Since(began); took > 13*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
