package legacy

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

func TestLongStreamOfACallEndsAndItsClientComesBackForTheRest_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{Poll: 30 * time.Second}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		k := <-b.held
		start := time.Now()
		resp := <-answer
		body, err := io.ReadAll(resp.Body)
		want(t, "how it ends", err, error(nil))
		want(t, "events", string(body), "id: 1-1\ndata: \n\n"+strings.Repeat(": keep-alive\n\n", 3)+"retry: 500\n\n")
		if d := time.Since(start); d < 30*time.Second || d > 36*time.Second {
			t.Errorf("it ended after %v", d)
		}
		want(t, "the client can come back", k.Reachable(), true)
		k.Send([]byte(note))
		resumed := p.get("1-1")
		body, _ = io.ReadAll(resumed.Body)
		want(t, "the next one", string(body)[:len("event: message\nid: 1-2\n")], "event: message\nid: 1-2\n")
		k.finish(`{}`)
		want(t, "the rest", readEvents(t, p.get("1-2")).rest(), []string{`1-3|{"jsonrpc":"2.0","id":1,"result":{}}`})
	})
}

// TestStreamThatEndsBeforeItsFirstEventLeftSaysWhereItIs_E8: its question is being kept by a store that
// is slow. Without an id there would be no way back.
func TestStreamThatEndsBeforeItsFirstEventLeftSaysWhereItIs_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{Poll: time.Second}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		k := <-b.held
		k.Address() // which begins the stream
		body, _ := io.ReadAll((<-answer).Body)
		want(t, "how it ends", string(body), "id: 1-1\ndata: \n\nretry: 500\n\n")
		k.Send([]byte(note))
		k.finish(`{}`)
		want(t, "the rest", len(readEvents(t, p.get("1-1")).rest()), 2)
	})
}

func TestEachResumedStreamSaysWhereItIs_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{Poll: time.Second}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		k := <-b.held
		_, _ = io.ReadAll((<-answer).Body)
		for range 3 { // SDK clients know only the ids of the latest response
			body, _ := io.ReadAll(p.get("1-1").Body)
			want(t, "a resumed stream without news", string(body), "id: 1-1\ndata: \n\nretry: 500\n\n")
		}
		k.finish(`{}`)
		want(t, "the rest", readEvents(t, p.get("1-1")).rest(), []string{`1-2|{"jsonrpc":"2.0","id":1,"result":{}}`})
	})
}

func TestStreamsThatNobodyWouldComeBackToLastAsLongAsTheyAreNeeded_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			poll    time.Duration
			version mcp.Version
		}{
			"an older client": {time.Second, mcp.V20250618},
			"no session":      {time.Second, ""},
			"by default":      {0, mcp.V20251125},
		} {
			b := newFake()
			_, p := servePipe(t, Options{Poll: tc.poll}, b)
			if tc.version != "" {
				p.initialize(tc.version)
			}
			answer := p.async(hold)
			k := <-b.held
			done := make(chan []string)
			go func() { done <- readEvents(t, <-answer).rest() }()
			time.Sleep(5 * time.Minute)
			k.finish(`{}`)
			if got := <-done; len(got) == 0 {
				t.Errorf("%s: no answer", name)
			}
		}
	})
}

func TestStandaloneStreamIsNotPolled_E8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		_, p := servePipe(t, Options{Poll: time.Second}, b)
		p.initialize(mcp.V20251125)
		ev := readEvents(t, p.get(""))
		want(t, "priming", ev.next(), "0-1|")
		got := make(chan string)
		go func() { got <- ev.next() }()
		time.Sleep(time.Minute)
		b.last().push.Push("k", []byte(`{"n":1}`))
		want(t, "still there", <-got, `0-2|{"n":1}`)
	})
}
