//go:build linux

package legacy

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
)

func TestSlowReaderHoldsNobodyUpAndLosesNothing(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{Log: testLimits}, b)
	const clients, events = 4, 40
	big := `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("x", 256<<10) + `"}`
	var slow *http.Response
	var quick sync.WaitGroup
	for i := range clients {
		p.session = ""
		p.initialize(mcp.V20250618)
		_, resp := heldGet(t, h, p, "")
		if i == 0 {
			slow = resp
			continue
		}
		quick.Go(func() { wantSequence(t, resp, events) })
	}
	for n := range events {
		for _, c := range b.convs {
			c.push.Push(fmt.Sprint(n), []byte(big))
		}
	}
	quick.Wait() // while the slow client has not read anything
	want(t, "somebody waits for the slow one", h.gate.Count(), 1)
	wantSequence(t, slow, events)
	streams, _ := h.streams.Parked()
	want(t, "parked", streams, clients)
}

// wantSequence reads events and checks that none is missing or out of order.
func wantSequence(t *testing.T, resp *http.Response, events int) {
	d := sse.NewDecoder(resp.Body, 1<<20)
	for n := 1; n <= events; n++ {
		ev, err := d.Next()
		if err != nil || ev.ID != fmt.Sprintf("0-%d", n) {
			t.Errorf("event %d: %q, %v", n, ev.ID, err)
			return
		}
	}
}

func TestReaderThatStallsIsLetGoAndMayResume(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{WriteTimeout: 50 * time.Millisecond, Log: testLimits}, b)
	p.initialize(mcp.V20250618)
	_, _ = heldGet(t, h, p, "") // never reads
	s := p.live(h)
	big := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for n := range 16 {
		b.last().push.Push(fmt.Sprint(n), big)
	}
	eventually(t, "it is let go", func() bool { return !s.Busy() })
	waitParked(t, h, 0, 0)
	want(t, "in flight", h.gate.Count(), 0)
	b.last().push.Push("k", []byte(`{"n":1}`))
	want(t, "resumed", readEvents(t, p.get("0-16")).next(), `0-17|{"n":1}`)
}

func TestCloseCutsASlowReader(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{WriteTimeout: time.Hour, Log: testLimits}, b)
	p.initialize(mcp.V20250618)
	l, _, k := heldCall(t, h, p, b)
	k.Send([]byte(`"` + strings.Repeat("x", 16<<20) + `"`))
	eventually(t, "somebody waits for the client", func() bool { return h.gate.Count() == 2 })
	h.Close()
	eventually(t, "nobody does", func() bool { return h.gate.Count() == 0 })
	_, err := io.Copy(io.Discard, l.conn)
	_ = err // cut: a reset or the end
	waitParked(t, h, 0, 0)
}

func TestAnswerToASlowReaderOutlivesItsCall(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{Log: testLimits}, b)
	p.initialize(mcp.V20250618)
	_, resp, k := heldCall(t, h, p, b)
	big := `"` + strings.Repeat("x", 8<<20) + `"`
	k.finish(big)
	down := make(chan error)
	go func() { down <- h.Shutdown(t.Context()) }() // waits until the answer is delivered
	all := text(t, resp)
	if !strings.HasSuffix(strings.TrimSpace(all), big+"}") {
		t.Errorf("got %d bytes", len(all))
	}
	want(t, "shutdown", <-down, error(nil))
}

func TestParkingLosesNothingUnderConcurrency(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{ParkAfter: time.Nanosecond}, b)
	p.initialize(mcp.V20250618)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l := dialWire(t, p)
			for range 10 {
				l.send(p.request(http.MethodPost, hold))
				k := <-b.held
				wg.Go(func() {
					tick := time.NewTicker(janitorStep / 7)
					defer tick.Stop()
					for n := range 20 {
						k.Send(fmt.Appendf(nil, `{"n":%d}`, n))
						<-tick.C
					}
					k.finish(`{}`)
				})
				got := readEvents(t, l.response()).rest()
				for n, e := range got[:len(got)-1] {
					if !strings.HasSuffix(e, fmt.Sprintf(`|{"n":%d}`, n)) {
						t.Errorf("event %d is %s", n, e)
					}
				}
				if len(got) != 21 {
					t.Errorf("%d events", len(got))
				}
			}
		})
	}
	wg.Wait()
	want(t, "in flight", h.gate.Count(), 0)
}

func TestHeldStreamsNeedNoGoroutines(t *testing.T) {
	const n = 400
	b := newFake()
	h, p := serve(t, Options{MaxInFlight: n}, b)
	p.initialize(mcp.V20250618)
	before := runtime.NumGoroutine()
	var lines []*wire
	var calls []*call
	for range n {
		l := dialWire(t, p)
		l.send(p.request(http.MethodPost, hold))
		k := <-b.held
		k.Send([]byte(note))
		_ = l.response()
		lines, calls = append(lines, l), append(calls, k)
	}
	waitParked(t, h, n, 0)
	eventually(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+5 })
	s := p.live(h)
	want(t, "in use", s.Calls(false), n)
	for i, k := range calls {
		k.finish(`{}`)
		if i%2 == 0 {
			lines[i].conn.Close()
		}
	}
	waitParked(t, h, 0, n/2)
	want(t, "in use", s.Calls(false), 0)
}

// testLimits lets logs hold the large events of these tests.
var testLimits = sessions.Limits{Bytes: 64 << 20}
