package legacy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

const hold = `{"jsonrpc":"2.0","id":1,"method":"hold"}`

func TestSlowResponseBecomesAStreamAfterTheCommitDelay_E6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		start := time.Now()
		resp := p.post(hold) // returns when the head arrives
		if d := time.Since(start); d < 2*time.Second || d > 2*time.Second+2*janitorStep {
			t.Errorf("committed after %v", d)
		}
		ev := readEvents(t, resp)
		want(t, "priming (E-7)", ev.next(), "1-1|")
		(<-b.held).finish(`{}`)
		want(t, "result", ev.rest(), []string{`1-2|{"jsonrpc":"2.0","id":1,"result":{}}`})
	})
}

func TestCommitWithoutPrimingStillSendsTheHead_E6_E7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{CommitDelay: time.Second}, b)
		p.initialize(mcp.V20250618)
		start := time.Now()
		resp := p.post(hold)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("committed after %v", d)
		}
		k := <-b.held
		if k.Refuse(&downstream.Refusal{Status: 401}) {
			t.Error("refused after the commit (H-4)")
		}
		k.finish(`{}`)
		want(t, "result", readEvents(t, resp).rest(), []string{`1-1|{"jsonrpc":"2.0","id":1,"result":{}}`})
	})
}

func TestSlowResponseStaysJSONForAClientThatTakesNoStream_E5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		p.header.Set("Accept", "application/json")
		answer := p.async(hold)
		k := <-b.held
		time.Sleep(time.Minute)
		k.finish(`{}`)
		want(t, "body", text(t, <-answer), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

func TestFastResponseIsNeverCommitted_E6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		k := <-b.held
		time.Sleep(1900 * time.Millisecond)
		k.finish(`{}`)
		want(t, "type", (<-answer).Header.Get("Content-Type"), "application/json")
		time.Sleep(10 * time.Second)
		want(t, "exchanges that are still on the agenda", h.exchanges.Fresh(), 0)
	})
}

func TestQuietStreamsAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20250618)
		resp := p.get("")
		last := time.Now()
		buf := make([]byte, 256)
		for range 5 {
			n, err := resp.Body.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "comment", string(buf[:n]), ": keep-alive\n\n")
			if d := time.Since(last); d > 15*time.Second {
				t.Errorf("silent for %v", d)
			}
			last = time.Now()
		}
		go b.last().push.Push("k", []byte(`{"n":1}`)) // a pipe holds nothing: pushing waits for reading
		want(t, "then a message", readEvents(t, resp).next(), `0-1|{"n":1}`)
	})
}

func TestIdleSessionExpires_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{IdleTimeout: 30 * time.Minute}, b)
		p.initialize(mcp.V20251125)
		for range 4 { // every use slides the end
			time.Sleep(20 * time.Minute)
			want(t, "used", p.post(ping).StatusCode, 200)
		}
		time.Sleep(31 * time.Minute)
		want(t, "sessions", h.Sessions(), 0)
		want(t, "cause", b.last().cause(), error(sessions.Expired))
		want(t, "afterwards", p.post(ping).StatusCode, 404)
	})
}

func TestSessionWithALiveFlowOrListenerDoesNotExpire_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		h, p := servePipe(t, Options{IdleTimeout: time.Minute}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		k := <-b.held
		ev := readEvents(t, <-answer)
		ev.next()
		time.Sleep(3 * time.Hour)
		want(t, "sessions", h.Sessions(), 1)
		k.finish(`{}`)
		ev.rest()
		get := p.get("")
		go func() { _, _ = get.Body.Read(make([]byte, 1<<20)); ev2 := readEvents(t, get); ev2.rest() }()
		time.Sleep(3 * time.Hour)
		want(t, "sessions", h.Sessions(), 1)
		_ = get.Body.Close()
		time.Sleep(3 * time.Minute)
		want(t, "sessions", h.Sessions(), 0)
	})
}

func TestEndedStreamCanBeResumedForAWhile_E20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p := servePipe(t, Options{}, newFake())
		p.initialize(mcp.V20251125)
		_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)).rest()
		time.Sleep(4 * time.Minute)
		want(t, "within the retention", len(readEvents(t, p.get("1-1")).rest()), 2)
		time.Sleep(2 * time.Minute)
		want(t, "after it", p.get("1-1").StatusCode, 400)
		s := p.live(h)
		want(t, "memory", len(s.Streams().Look()), 0)
	})
}

func TestDisconnectedClientFetchesTheResultLater_E12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		k := <-b.held
		resp := <-answer
		want(t, "priming", readEvents(t, resp).next(), "1-1|")
		_ = resp.Body.Close()
		synctest.Wait()
		time.Sleep(10 * time.Minute) // the flow goes on meanwhile
		k.finish(`{"done":1}`)
		want(t, "resumed", readEvents(t, p.get("1-1")).rest(), []string{`1-2|{"jsonrpc":"2.0","id":1,"result":{"done":1}}`})
	})
}

func TestClientThatLeftIsReachableIfItCanResume_E23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			version   mcp.Version // none: no session
			send      int         // events before the client leaves
			missed    int         // and after it
			reachable bool
		}{
			"before it learnt of an event": {mcp.V20250618, 0, 0, false},
			"with a priming event":         {mcp.V20251125, 0, 0, true},
			"with an event":                {mcp.V20241105, 1, 0, true},
			"within the log":               {mcp.V20250618, 1, sessions.DefaultEvents, true},
			"beyond the log":               {mcp.V20250618, 1, sessions.DefaultEvents + 1, false},
			"without a session":            {"", 1, 0, false},
		} {
			b := newFake()
			_, p := servePipe(t, Options{}, b)
			if tc.version != "" {
				p.initialize(tc.version)
			}
			answer := p.async(hold)
			k := <-b.held
			for range tc.send {
				go k.Send([]byte(note))
			}
			resp := <-answer
			if !k.Reachable() {
				t.Errorf("%s: gone while it was there", name)
			}
			if tc.send > 0 || message.Priming(tc.version) {
				readEvents(t, resp).next()
			}
			_ = resp.Body.Close()
			synctest.Wait()
			for range tc.missed {
				k.Send([]byte(note))
			}
			if got := k.Reachable(); got != tc.reachable {
				t.Errorf("%s: reachable %v", name, got)
			}
			k.finish(`{}`)
		}
	})
}

func TestClientThatLeftAtOnceIsNotReachable_E23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{}, b)
		p.initialize(mcp.V20251125)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			if resp, err := p.client.Do(p.request(http.MethodPost, hold).WithContext(ctx)); err == nil {
				_ = resp.Body.Close()
			}
		}()
		k := <-b.held
		want(t, "while it waits", k.Reachable(), true)
		leave()
		synctest.Wait()
		want(t, "reachable", k.Reachable(), false)
		k.finish(`{}`)
	})
}

func TestClientThatTakesALargeResultSlowlyGetsItAndOneThatStopsIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p := servePipe(t, Options{WriteTimeout: 5 * time.Second}, newFake())
		p.initialize(mcp.V20251125)
		large := `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"n":"` + strings.Repeat("x", 1<<20) + `"}}`
		slow, part, size := p.post(large), make([]byte, 128<<10), 0
		for {
			n, err := io.ReadFull(slow.Body, part)
			size += n
			if err != nil {
				break
			}
			time.Sleep(2 * time.Second)
		}
		want(t, "what the slow one got", size, slow.ContentLength)
		stopped := p.post(large)
		time.Sleep(6 * time.Second)
		want(t, "calls whose answer nobody takes", h.gate.Count(), 0)
		if _, err := io.ReadAll(stopped.Body); err == nil {
			t.Error("the connection was not closed")
		}
	})
}
