package legacy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
)

// An answer that the bridge has no memory for is not acknowledged, so that its client can send it
// again: over HTTP by the status, also of an array, elsewhere by an error under its id.
func TestAnAnswerThatCannotBeKeptIsNotAcknowledged(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":"q","result":{}}`
	b := newFake()
	_, p := serve(t, Options{Memory: budget.New(1 << 20)}, b)
	p.initialize(mcp.V20250326)
	for err, status := range map[error]int{budget.ErrShare: http.StatusTooManyRequests, budget.ErrFull: http.StatusServiceUnavailable} {
		b.unkept = err
		for _, body := range []string{answer, "[" + answer + "]"} {
			resp := p.post(body)
			want(t, body, resp.StatusCode, status)
			want(t, "it is told when to try again", resp.Header.Get("Retry-After") != "", true)
			want(t, "and why", strings.Contains(text(t, resp), "limits.memory"), true)
		}
	}
	b.unkept = nil
	want(t, "again", p.post("["+answer+"]").StatusCode, http.StatusAccepted)
	b = newFake()
	_, p = serve(t, Options{}, b)
	p.initialize(mcp.V20250326)
	b.unkept = budget.ErrFull // the server's connections may be bounded where this one's are not
	want(t, "without bounds here", p.post(answer).StatusCode, http.StatusServiceUnavailable)
	b = newFake()
	_, p = serve(t, stored(), b)
	p.initialize(mcp.V20250326)
	b.unkept = budget.ErrNoRoom
	resp := p.post(answer)
	want(t, "no room in the store", resp.StatusCode, http.StatusServiceUnavailable)
	want(t, "when to try again", resp.Header.Get("Retry-After") != "", true)
	want(t, "and why", strings.Contains(text(t, resp), "store.size"), true)
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		b.unkept = budget.ErrShare
		l.send(answer)
		if got := l.next(); !strings.Contains(got, `"id":"q"`) || !strings.Contains(got, "limits.memory") {
			t.Errorf("got %s", got)
		}
	})
}
