package legacy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
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
		synctest.Wait() // whoever notices first logs it, which may be the handler
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

// stalled is the response of a client that reads nothing until free is closed.
type stalled struct {
	recorder
	began, free chan struct{}
}

func (w *stalled) Write(b []byte) (int, error) {
	close(w.began)
	<-w.free
	return w.recorder.Write(b)
}

// The answer is written without a lock: nobody who only asks how the call goes, and
// nobody who ends it, waits for its client. Its handler does.
func TestSlowReaderOfAWholeAnswerHoldsNobodyUp(t *testing.T) {
	b := newFake()
	h, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	for name, finish := range map[string]func(*call){
		"a result":  func(k *call) { k.finish(`{}`) },
		"a refusal": func(k *call) { k.Refuse(&downstream.Refusal{Status: 401, Body: []byte(`{}`)}) },
	} {
		w := &stalled{recorder{h: http.Header{}}, make(chan struct{}), make(chan struct{})}
		r := p.request(http.MethodPost, hold)
		r.Host = "localhost"
		ctx, leave := context.WithCancel(t.Context())
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			h.ServeHTTP(w, r.WithContext(ctx))
		}()
		k := <-b.held
		go finish(k)
		<-w.began
		var asked atomic.Bool
		go func() {
			k.Reachable()
			k.Send([]byte(note))
			k.Abandon()
			asked.Store(true)
		}()
		eventually(t, name+": nobody is held up", asked.Load)
		leave()
		select {
		case <-returned:
			t.Errorf("%s: the handler left while its response was being written", name)
		default:
		}
		close(w.free)
		<-returned
		want(t, name, w.n > 0, true)
		eventually(t, name+": it is over", func() bool { return h.gate.Count() == 0 })
	}
}
