package legacy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sse"
)

// guest is a session, and what the reference model says of it.
type guest struct {
	peer
	gone   bool
	used   bool      // since initialize
	at     time.Time // of the last use
	calm   time.Time // when its last call ended: what is busy counts as used now and then
	visits []*visit
}

// busy reports whether a call is under way.
func (g *guest) busy() bool {
	return slices.ContainsFunc(g.visits, func(v *visit) bool { return !v.over })
}

// stays reports whether the session must not make room for another one.
func (g *guest) stays() bool {
	return g.busy() || g.used && time.Since(g.at) < session.RecentUse
}

// visit is a call over HTTP: what the server has said in it, and what its client has got.
type visit struct {
	server *call
	sent   []string
	over   bool
	leave  context.CancelFunc // takes the client's connection away

	mu     sync.Mutex
	got    []string
	last   string // the id of the last event that came
	reads  bool
	status int
}

// inn is the bridge with its guests.
type inn struct {
	t      *testing.T
	h      *HTTP
	b      *fakeBackend
	p      *peer
	guests []*guest
}

const (
	innPlaces = 4
	innIdle   = 2 * time.Hour
)

// arrive opens a session, if the bridge lets it.
func (n *inn) arrive() {
	g := &guest{peer: *n.p, at: time.Now()}
	resp := g.post(initialize(mcp.V20250618))
	g.session, g.version = resp.Header.Get("Mcp-Session-Id"), string(mcp.V20250618)
	full, perhaps := 0, 0
	for _, other := range n.guests {
		switch {
		case other.gone:
		case other.stays():
			full++
		case time.Since(other.calm) <= session.RecentUse:
			perhaps++
		}
	}
	refused := resp.StatusCode == http.StatusServiceUnavailable
	if _ = text(n.t, resp); full >= innPlaces && !refused || full+perhaps < innPlaces && refused {
		n.t.Errorf("a newcomer gets %s while %d, perhaps %d, of %d places are in use", resp.Status, full, full+perhaps, innPlaces)
	}
	n.notice(func(g *guest) bool { return !g.stays() })
	if resp.StatusCode == http.StatusOK {
		n.guests = append(n.guests, g)
	}
}

// notice learns which sessions have ended, of those that may have.
func (n *inn) notice(may func(*guest) bool) {
	live := map[string]bool{}
	for _, s := range n.h.sessions.Look() {
		live[s.ID] = true
	}
	if len(live) > innPlaces {
		n.t.Errorf("%d sessions", len(live))
	}
	for i, g := range n.guests {
		switch here := live[logfield.Short(g.session)]; {
		case here && g.gone:
			n.t.Errorf("session %d is back", i)
		case !here && !g.gone && !may(g):
			n.t.Errorf("session %d has ended, used %t %v ago, busy %t", i, g.used, time.Since(g.at), g.busy())
		default:
			g.gone = !here
		}
	}
}

func never(*guest) bool { return false }

// use notes that a request came, and whether its session must be there.
func (n *inn) use(g *guest, status, want int) {
	if g.gone {
		want = http.StatusNotFound
	} else {
		g.used, g.at = true, time.Now()
	}
	if status != want {
		n.t.Errorf("a request gets %d, not %d (gone: %t)", status, want, g.gone)
	}
}

// call has the server begin to answer a call.
func (n *inn) call(g *guest) {
	if g.gone {
		n.use(g, g.post(hold).StatusCode, 0)
		return
	}
	v := new(visit)
	ctx, cancel := context.WithCancel(n.t.Context())
	v.leave = cancel
	go v.read(&g.peer, g.request(http.MethodPost, strings.Replace(hold, `"id":1`, fmt.Sprintf(`"id":%d`, len(g.visits)+1), 1)).WithContext(ctx))
	v.server = <-n.b.held
	g.visits = append(g.visits, v)
	v.say()
	synctest.Wait()
	n.use(g, v.status, http.StatusOK)
}

// say has the server send the next message of a call.
func (v *visit) say() {
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"n":%d}}`, len(v.sent))
	v.sent = append(v.sent, msg)
	v.server.Send([]byte(msg))
}

// finish ends a call.
func (v *visit) finish() {
	v.over = true
	v.sent = append(v.sent, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, v.server.req.ID))
	v.server.finish(`{}`)
}

// read takes what comes until the stream ends.
func (v *visit) read(p *peer, r *http.Request) {
	v.mu.Lock()
	v.reads = true
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.reads = false
		v.mu.Unlock()
	}()
	resp, err := p.client.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	v.mu.Lock()
	v.status = resp.StatusCode
	v.mu.Unlock()
	for d := sse.NewDecoder(bufio.NewReader(resp.Body), 1<<20); ; {
		ev, err := d.Next()
		if err != nil {
			return
		}
		v.mu.Lock()
		v.got, v.last = append(v.got, string(ev.Data)), ev.ID
		v.mu.Unlock()
	}
}

// resume comes back for the rest of a call.
func (n *inn) resume(g *guest, v *visit) {
	if v.reads || v.last == "" || len(v.got) == len(v.sent) && v.over {
		return
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	v.leave, v.status = cancel, 0
	r := g.request(http.MethodGet, "").WithContext(ctx)
	r.Header.Set("Last-Event-ID", v.last)
	go v.read(&g.peer, r)
	synctest.Wait()
	n.use(g, v.status, http.StatusOK)
}

// judge compares what clients have got with what was sent.
func (n *inn) judge() {
	synctest.Wait()
	for _, g := range n.guests {
		for i, v := range g.visits {
			if len(v.got) > len(v.sent) || !slices.Equal(v.got, v.sent[:len(v.got)]) || v.reads && !g.gone && len(v.got) != len(v.sent) {
				n.t.Errorf("call %d: sent\n%q\ngot\n%q", i, v.sent, v.got)
			}
		}
	}
}

// step does one thing.
func (n *inn) step(r *rapid.T) {
	what := rapid.IntRange(0, 15).Draw(r, "what")
	if len(n.guests) == 0 || what < 2 {
		n.arrive()
		return
	}
	g := n.guests[rapid.IntRange(0, len(n.guests)-1).Draw(r, "who")]
	var v *visit
	if len(g.visits) > 0 {
		v = g.visits[rapid.IntRange(0, len(g.visits)-1).Draw(r, "call")]
	}
	switch {
	case what < 5 || v == nil:
		n.call(g)
	case what < 8 && !v.over:
		v.say()
	case what < 10:
		v.leave()
	case what < 12:
		n.resume(g, v)
	case what == 12 && !v.over:
		v.finish()
		g.calm = time.Now()
	case what == 13:
		n.use(g, g.post(ping).StatusCode, http.StatusOK)
	case what == 14 && rapid.Bool().Draw(r, "delete"):
		n.use(g, g.do(g.request(http.MethodDelete, "")).StatusCode, http.StatusNoContent)
		n.notice(func(x *guest) bool { return x == g })
		g.void()
	default:
		time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Minute, innIdle + time.Minute}).Draw(r, "pause"))
		synctest.Wait() // the janitor may end sessions at this very instant
		n.notice(func(g *guest) bool { return !g.busy() && time.Since(g.at) >= innIdle })
	}
	n.judge()
	n.notice(never)
}

// void forgets the calls of a session that was ended under them.
func (g *guest) void() {
	for _, v := range g.visits {
		v.leave()
		v.over = true
	}
	synctest.Wait()
	g.visits = nil
}

// Whatever clients and servers do over HTTP, with connections that break, sessions that are
// ended, expire or make room for others: sessions are there as a reference model says, those
// in use first of all, and every client gets each message of its calls once and in order,
// over however many connections.
func TestSessionsAndStreamsAreAsTheModelSays_E12(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newFake()
			h, p := servePipe(t, Options{
				MaxSessions: innPlaces, IdleTimeout: innIdle, Retention: 1000 * time.Hour, KeepAlive: 1000 * time.Hour, MaxStreams: 1000,
			}, b)
			n := &inn{t: t, h: h, b: b, p: p}
			for range rapid.IntRange(1, 40).Draw(r, "steps") {
				n.step(r)
			}
			for _, g := range n.guests {
				for _, v := range g.visits {
					if !v.over {
						v.finish()
					}
					synctest.Wait()
					if n.resume(g, v); !g.gone && len(v.got) != len(v.sent) {
						t.Errorf("sent\n%q\ngot\n%q", v.sent, v.got)
					}
					v.leave()
				}
			}
			synctest.Wait()
		})
	})
}
