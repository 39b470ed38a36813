package legacy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

const note = `{"jsonrpc":"2.0","method":"notifications/message"}`

func TestInterimMessageTurnsTheResponseIntoAStream_E6_E7_E9(t *testing.T) {
	result := `{"jsonrpc":"2.0","id":1,"result":{}}`
	for version, events := range map[mcp.Version][]string{
		mcp.V20251125: {"1-1|", "1-2|" + note, "1-3|" + result},
		mcp.V20250618: {"1-1|" + note, "1-2|" + result},
		mcp.V20250326: {"1-1|" + note, "1-2|" + result},
		mcp.V20241105: {"1-1|" + note, "1-2|" + result},
	} {
		t.Run(string(version), func(t *testing.T) {
			_, p := serve(t, Options{}, newFake())
			p.initialize(version)
			resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)
			want(t, "status", resp.StatusCode, 200)
			want(t, "buffering", resp.Header.Get("X-Accel-Buffering"), "no")
			want(t, "caching", resp.Header.Get("Cache-Control"), "no-cache")
			want(t, "events", readEvents(t, resp).rest(), events)
		})
	}
}

// held is a call that its server holds, and that has sent a note to its client.
func held(t *testing.T, version mcp.Version) (*peer, *call, *events) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(version)
	answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
	k := <-b.held
	k.Send([]byte(note))
	return p, k, readEvents(t, <-answer)
}

func TestInterimMessagesArriveAtOnce(t *testing.T) {
	_, k, ev := held(t, mcp.V20250618)
	want(t, "first", ev.next(), "1-1|"+note)
	k.Send([]byte(note))
	want(t, "second", ev.next(), "1-2|"+note)
	k.finish(`{}`)
	want(t, "result", ev.rest(), []string{`1-3|{"jsonrpc":"2.0","id":1,"result":{}}`})
}

func TestClientThatTakesOnlyJSONGetsNoStream_E5_A18(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	p.header.Set("Accept", "application/json")
	resp := p.post(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)
	want(t, "type", resp.Header.Get("Content-Type"), "application/json")
	want(t, "body", text(t, resp), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	_, body := p.call(`{"jsonrpc":"2.0","id":1,"method":"whoami"}`)
	want(t, "interactive", body, `{"jsonrpc":"2.0","id":1,"result":{"stateless":false,"interactive":false}}`)
}

func TestClientThatTakesOnlyStreamsGetsOne_E5(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.header.Set("Accept", "text/event-stream")
	resp := p.post(initialize(mcp.V20250618))
	p.session = resp.Header.Get("Mcp-Session-Id")
	want(t, "initialize", readEvents(t, resp).rest(), []string{`|{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}`})
	resp = p.post(ping)
	want(t, "call", readEvents(t, resp).rest(), []string{`1-1|{"jsonrpc":"2.0","id":1,"result":{"n":1}}`})
}

func TestDroppedStreamIsResumedWhereItBroke_E12_E20_E21(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
	other := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`) // its stream must not mix in
	one, two := <-b.held, <-b.held
	one.Send([]byte(`{"n":1}`))
	two.Send([]byte(`{"other":1}`))
	resp, resp2 := <-answer, <-other
	ev := readEvents(t, resp)
	first := ev.next()
	second := ev.next()
	if second != first[:2]+`2|{"n":1}` && second != first[:2]+`2|{"other":1}` {
		t.Fatalf("events %q, %q", first, second)
	}
	if second[len(second)-10:] == `"other":1}` { // the goroutines came in the other order
		one, two = two, one
	}
	_ = resp.Body.Close() // the client drops off: no cancellation
	one.Send([]byte(`{"n":2}`))
	one.Send([]byte(`{"n":3}`))
	one.finish(`{"late":true}`)
	want(t, "conversation", b.last().cause(), error(nil))

	stream := second[:1]
	got := readEvents(t, p.get(stream+"-2")).rest()
	want(t, "replay", got, []string{
		stream + `-3|{"n":2}`, stream + `-4|{"n":3}`, stream + `-5|{"jsonrpc":"2.0","id":1,"result":{"late":true}}`,
	})
	got = readEvents(t, p.get(stream+"-4")).rest()
	want(t, "later replay", got, []string{stream + `-5|{"jsonrpc":"2.0","id":1,"result":{"late":true}}`})
	want(t, "nothing left", p.get(stream+"-5").StatusCode, http.StatusNoContent)
	two.finish(`{}`)
	_ = readEvents(t, resp2).rest()
}

func TestResumedStreamGoesOnLive_E21(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250326)
	answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
	k := <-b.held
	k.Send([]byte(`{"n":1}`))
	old := <-answer
	want(t, "old", readEvents(t, old).next(), `1-1|{"n":1}`)
	ev := readEvents(t, p.get("1-0")) // while the old connection still stands
	want(t, "replay", ev.next(), `1-1|{"n":1}`)
	k.Send([]byte(`{"n":2}`))
	want(t, "live", ev.next(), `1-2|{"n":2}`)
	k.finish(`{}`)
	want(t, "end", ev.rest(), []string{`1-3|{"jsonrpc":"2.0","id":1,"result":{}}`})
	want(t, "the old connection got nothing more", readEvents(t, old).rest(), []string{})
}

func TestUnknownEventIDIs400_E21(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)).rest()
	for _, id := range []string{"2-1", "1-99", "0-0", "1", "-", "a-b", "1--1", "99999999999999999999-1"} {
		want(t, id, p.get(id).StatusCode, 400)
	}
}

func TestAbandonedStreamHasNothingToResume(t *testing.T) {
	p, k, ev := held(t, mcp.V20251125)
	ev.next()
	ev.next()
	k.Abandon()
	want(t, "no response", len(ev.rest()), 0)
	want(t, "resume", p.get("1-2").StatusCode, http.StatusNoContent)
}

func TestOnlyTheNewestEndedStreamsAreKept(t *testing.T) {
	_, p := serve(t, Options{MaxStreams: 2}, newFake())
	p.initialize(mcp.V20251125)
	for range 4 {
		_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)).rest()
	}
	for stream, status := range map[int]int{1: 400, 2: 400, 3: 200, 4: 200} {
		want(t, fmt.Sprint("stream ", stream), p.get(fmt.Sprintf("%d-1", stream)).StatusCode, status)
	}
}

func TestCallsAfterTheEndAreIgnored_DI13(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
	k := <-b.held
	k.Finish([]byte(`{"jsonrpc":"2.0","id":1,"result":1}`))
	k.Finish([]byte(`{"jsonrpc":"2.0","id":1,"result":2}`))
	k.Send([]byte(note))
	k.Abandon()
	if k.Refuse(&downstream.Refusal{Status: 401}) {
		t.Error("refused after the end")
	}
	want(t, "body", text(t, <-answer), `{"jsonrpc":"2.0","id":1,"result":1}`)
	want(t, "in flight", h.gate.Count(), 0)
}

func TestClientThatLeftBeforeTheFirstByteLosesOnlyItsOwnAnswer_E12(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	s := p.live(h)
	ex := h.exchanges.Begin(discard{http.Header{}}, p.request(http.MethodPost, ""), s, web.AcceptBoth, new(budget.Hold), &downstream.Caller{}, false)
	ex.Detach()
	ex.Send(texted([]byte(note)))
	ex.Finish(downstream.Result("1", nil))
	want(t, "in flight", h.gate.Count(), 0)
	want(t, "streams", len(s.Streams().Look()), 0)
	want(t, "busy", s.Busy(), false)
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

// What nobody has fetched yet is worth more than what was delivered (E-20).
func TestUndeliveredEndsOutliveDeliveredOnes_E20(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{MaxStreams: 2, CommitDelay: janitorStep}, b)
	p.initialize(mcp.V20251125)
	s := p.live(h)
	answer := p.async(hold)
	k := <-b.held
	resp := <-answer
	_ = readEvents(t, resp).next() // the priming event
	_ = resp.Body.Close()
	eventually(t, "it left", func() bool { return !s.Streams().Find(1).Attached() })
	k.finish(`{"kept":true}`)
	for range 5 {
		_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":2,"method":"chatty"}`)).rest()
	}
	want(t, "kept", len(s.Streams().Look()), 3)
	want(t, "fetched", readEvents(t, p.get("1-1")).rest(), []string{`1-2|{"jsonrpc":"2.0","id":1,"result":{"kept":true}}`})
	for range 2 {
		_ = readEvents(t, p.post(`{"jsonrpc":"2.0","id":2,"method":"chatty"}`)).rest()
	}
	want(t, "then it is one of them", p.get("1-1").StatusCode, 400)
}

// TestCallsThatEndWhileTheirClientIsAwayAreAllFetched: as many as may be under way, and not as many as are kept of those that
// were delivered.
func TestCallsThatEndWhileTheirClientIsAwayAreAllFetched_E20(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{CommitDelay: janitorStep}, b)
	p.initialize(mcp.V20251125)
	s := p.live(h)
	const calls = 40
	for n := range calls {
		answer := p.async(hold)
		k := <-b.held
		resp := <-answer
		_ = readEvents(t, resp).next() // the priming event
		_ = resp.Body.Close()
		eventually(t, "it left", func() bool { return !s.Streams().Find(uint64(n + 1)).Attached() })
		k.finish(`{"kept":true}`)
	}
	for n := range calls {
		want(t, fmt.Sprint("fetched of ", n+1), len(readEvents(t, p.get(fmt.Sprintf("%d-1", n+1))).rest()), 1)
	}
}

// Some clients drop JSON bodies, though they must accept them (E-4).
func TestAnswersAreStreamsIfThatIsWanted_E4(t *testing.T) {
	_, p := serve(t, Options{AlwaysStream: true}, newFake())
	for name, body := range map[string]string{
		"initialize": initialize(mcp.V20250618), "a result": ping, "an error": `{"jsonrpc":"2.0","id":1,"method":"panic"}`,
	} {
		got := readEvents(t, p.post(body)).rest()
		if len(got) != 1 || !strings.Contains(got[0], `"jsonrpc"`) {
			t.Errorf("%s: %q", name, got)
		}
	}
	p.initialize(mcp.V20250326)
	want(t, "a batch", len(readEvents(t, p.post("["+ping+"]")).rest()), 1)
	p.header.Set("Accept", "application/json")
	want(t, "who takes no stream", p.post(ping).Header.Get("Content-Type"), "application/json")
}
