package legacy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/rs/zerolog"
)

// burst sends notes and the answer as an upstream that pauses nowhere.
func (c *call) burst(notes, size int, result string) {
	for n := range notes {
		c.Queue(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"n","params":{"n":%d,"s":"%s"}}`, n, strings.Repeat("x", size)))
	}
	c.finish(result)
}

// A client is slow only when it takes nothing (E-20): a large event may take longer
// than one write may be blocked.
func TestClientThatTakesALargeEventSlowlyGetsItAndOneThatStopsIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := []byte(`{"jsonrpc":"2.0","method":"n","params":"` + strings.Repeat("x", 2<<20) + `"}`)
		var log bytes.Buffer
		b := newFake()
		h, p := servePipe(t, Options{WriteTimeout: 5 * time.Second, SSEMessages: "/messages", Logger: zerolog.New(&log).Level(zerolog.InfoLevel)}, b)
		for name, open := range map[string]func() (*http.Response, func()){
			"a call": func() (*http.Response, func()) {
				answer := p.async(hold)
				k := <-b.held
				go k.burst(0, 0, string(large))
				return <-answer, func() {}
			},
			"a call's stream": func() (*http.Response, func()) {
				answer := p.async(hold)
				k := <-b.held
				go func() { k.Send(large); k.finish(`{}`) }()
				return <-answer, func() {}
			},
			"HTTP+SSE": func() (*http.Response, func()) {
				r := p.request(http.MethodGet, "")
				r.Header.Del("Mcp-Session-Id")
				resp := p.do(r)
				first := make([]byte, 200)
				n, _ := resp.Body.Read(first)
				_, id, _ := strings.Cut(string(first[:n]), "sessionId=")
				c := h.channels.Get(strings.TrimSpace(id))
				go c.Push("", texted(large))
				return resp, func() { c.HangUp(nil) }
			},
		} {
			p.session = ""
			p.initialize(mcp.V20250618)
			slow, end := open()
			part, size := make([]byte, 128<<10), 0
			for read := 0; size < len(large); {
				n, err := slow.Body.Read(part)
				if size += n; err != nil {
					break
				}
				if read += n; read > len(part) {
					read = 0
					time.Sleep(time.Second)
				}
			}
			want(t, name, size >= len(large), true)
			end()
			_, _ = io.ReadAll(slow.Body)
		}
		want(t, "logged so far", log.String(), "")
		_ = p.async(hold)
		k := <-b.held
		k.Send(large)
		k.finish(`{}`)
		want(t, "logged", strings.Contains(log.String(), "a client reads too slowly; its connection was let go"), true)
	})
}

func TestStreamThatIsTakenOverBeforeItsFirstEventIsNoEmptyBody(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{CommitDelay: time.Hour}, b)
	p.initialize(mcp.V20250618)
	answer := p.async(hold)
	k := <-b.held
	k.Queue([]byte(note)) // nothing is written yet
	next := readEvents(t, p.get("1-0"))
	want(t, "type", (<-answer).Header.Get("Content-Type"), "text/event-stream")
	k.finish(`{}`)
	want(t, "events", len(next.rest()), 2)
}
