package legacy

import (
	"fmt"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestStandaloneStreamCarriesPushes_C3(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	conv := b.last()
	conv.push.Push("tools", []byte(`{"tools":1}`))
	conv.push.Push("uri:a", []byte(`{"a":1}`))
	conv.push.Push("tools", []byte(`{"tools":2}`))
	get := p.get("")
	want(t, "buffering", get.Header.Get("X-Accel-Buffering"), "no")
	ev := readEvents(t, get)
	want(t, "priming", ev.next(), "0-1|")
	want(t, "coalesced", ev.next(), `0-2|{"tools":2}`)
	want(t, "in order", ev.next(), `0-3|{"a":1}`)
	conv.push.Push("tools", []byte(`{"tools":3}`))
	want(t, "live", ev.next(), `0-4|{"tools":3}`)
}

func TestPushesNeverRideAResponseStream_C3(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
	k := <-b.held
	k.Send([]byte(note))
	b.last().push.Push("tools", []byte(`{"tools":1}`))
	k.finish(`{}`)
	want(t, "POST stream", readEvents(t, <-answer).rest(), []string{"1-1|" + note, `1-2|{"jsonrpc":"2.0","id":1,"result":{}}`})
	want(t, "GET stream", readEvents(t, p.get("")).next(), `0-1|{"tools":1}`)
}

func TestNewestGetWins_A31(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	one := readEvents(t, p.get(""))
	two := readEvents(t, p.get(""))
	want(t, "the older one ends", len(one.rest()), 0)
	b.last().push.Push("tools", []byte(`{"tools":1}`))
	want(t, "the newer one gets it", two.next(), `0-1|{"tools":1}`)
}

func TestStandaloneStreamIsResumed_E21(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250618)
	conv := b.last()
	get := p.get("")
	for i := range 3 {
		conv.push.Push("k", fmt.Appendf(nil, `{"n":%d}`, i))
	}
	ev := readEvents(t, get)
	want(t, "seen", ev.next(), `0-1|{"n":0}`)
	resumed := readEvents(t, p.get("0-1"))
	want(t, "replay", resumed.next(), `0-2|{"n":1}`)
	want(t, "replay", resumed.next(), `0-3|{"n":2}`)
	conv.push.Push("k", []byte(`{"n":3}`))
	want(t, "live", resumed.next(), `0-4|{"n":3}`)
}

func TestPendingPushesAreBounded_C3(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{MaxPending: 3}, b)
	p.initialize(mcp.V20250618)
	for i := range 10 {
		b.last().push.Push(fmt.Sprint(i), fmt.Appendf(nil, `{"n":%d}`, i))
	}
	ev := readEvents(t, p.get(""))
	for i := 7; i < 10; i++ {
		want(t, "kept", ev.next(), fmt.Sprintf(`%d-%d|{"n":%d}`, 0, i-6, i))
	}
}

func TestNoPusherWhenGetIsNotOffered_A4(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{NoGET: true}, b)
	p.initialize(mcp.V20251125)
	if b.last().push.Reaches() {
		t.Error("a pusher that says it can deliver")
	}
}

func TestGetNeedsAnAcceptThatTakesStreams_E5(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	p.header.Set("Accept", "application/json")
	resp := p.get("")
	want(t, "status", resp.StatusCode, 406)
	want(t, "why", text(t, resp), `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Accept must allow text/event-stream","data":{"bridge":{}}}}`)
}
