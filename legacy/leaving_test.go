package legacy

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

func TestShutdownLetsCallsFinishAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		get := readEvents(t, p.get(""))
		answer := p.async(hold)
		k := <-b.held
		down := make(chan error)
		go func() { down <- h.Shutdown(t.Context()) }()
		synctest.Wait()
		get.rest() // ends
		refused, taken := p.post(ping), p.post(`{"jsonrpc":"2.0","id":"leg","result":{}}`)
		want(t, "new call", refused.StatusCode, http.StatusServiceUnavailable)
		want(t, "answers still count", taken.StatusCode, 202)
		k.finish(`{}`)
		last := <-answer
		want(t, "the call's status", last.StatusCode, 200)
		for _, resp := range []*http.Response{refused, taken, last} {
			want(t, "the connection's last response", resp.Close, true)
		}
		want(t, "shutdown", <-down, error(nil))
		want(t, "cause", b.last().cause(), error(sessions.Closed))
		want(t, "sessions", h.Sessions(), 0)
	})
}

func TestShutdownCutsCallsOffAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		<-b.held
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		want(t, "the call ended", (<-answer).StatusCode, 200)
		want(t, "in flight", h.gate.Count(), 0)
	})
}

func TestClientThatStopsReadingIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{WriteTimeout: 5 * time.Second}, b)
		p.initialize(mcp.V20251125)
		get := p.get("") // a pipe holds nothing: whoever doesn't read blocks at once
		start := time.Now()
		big := make([]byte, 1<<20)
		for i := range big {
			big[i] = ' '
		}
		b.last().push.Push("k", big)
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("the pusher was held up for %v", d)
		}
		_ = get
		synctest.Wait()
		want(t, "other requests are unharmed", p.post(ping).StatusCode, 200)
	})
}

// What does not end, or whose client takes nothing, holds the end up for a second.
func TestLastWordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		over := make(chan struct{})
		b.ends = func(k *call) { <-over; k.Abandon() }
		h, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20250618)
		answer := p.async(hold)
		<-b.held
		began := time.Now()
		h.Close()
		want(t, "it took", time.Since(began), lastWords)
		close(over)
		<-answer
	})
}
