//go:build linux

package legacy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// wind is how long a call takes here to notice its end. Tests need not wait for it where nothing
// waits for the call.
const wind = 50 * time.Millisecond

// endsLate has calls end a moment after their conversation, or as soon as the endpoint did not wait for them.
func endsLate(b *fakeBackend) (closed chan struct{}) {
	closed = make(chan struct{})
	b.ends = func(k *call) {
		select {
		case <-time.After(wind):
		case <-closed:
		}
		k.Reply.Finish(downstream.Failure(k.req.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "over"}))
	}
	return closed
}

// A call learns of the end on a goroutine of its own: no connection may be cut before that has said so,
// whichever way the response goes, and whether the call is of a session.
func TestTheEndWaitsForTheLastWordsOfCalls(t *testing.T) {
	for name, header := range map[string]func(http.Header){
		"of a session":    func(http.Header) {},
		"without one":     func(h http.Header) { h.Del("Mcp-Session-Id") },
		"as JSON":         func(h http.Header) { h.Set("Accept", "application/json") },
		"without, as one": func(h http.Header) { h.Del("Mcp-Session-Id"); h.Set("Accept", "application/json") },
	} {
		for _, begun := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newFake()
				closed := endsLate(b)
				h, p := serve(t, Options{}, b)
				p.initialize(mcp.V20250618)
				l := dialWire(t, p)
				r := p.request(http.MethodPost, hold)
				header(r.Header)
				l.send(r)
				if k := <-b.held; begun && k.Interactive() {
					k.Send([]byte(note))
					if !testmode.NoPark() {
						waitParked(t, h, 1, 0)
					}
				}
				go func() { defer close(closed); h.Close() }()
				if text := l.body(); !strings.Contains(text, `"message":"over"`) {
					t.Errorf("the client got %q", text)
				}
				<-closed
			})
		}
	}
}
