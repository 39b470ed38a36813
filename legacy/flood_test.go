package legacy

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/rs/zerolog"
)

func TestFloodOfInitializeEndsNoSessionInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newFake()
		h, p := servePipe(t, Options{MaxSessions: 5, KeepAlive: time.Hour, Logger: zerolog.New(&log).Level(zerolog.WarnLevel)}, b)
		p.initialize(mcp.V20251125)
		answer := p.async(hold)
		calling := <-b.held
		used := *p
		p.session = ""
		p.initialize(mcp.V20251125)
		listening := readEvents(t, p.get(""))
		_ = listening.next()
		time.Sleep(5 * time.Minute) // neither has said anything since
		p.session = ""
		for range 200 {
			p.initialize(mcp.V20251125)
			p.session = ""
		}
		want(t, "sessions", h.Sessions(), 5)
		want(t, "told", strings.Count(log.String(), "session evicted: too many sessions"), noticeBurst)
		log.Reset()
		for range 3 {
			p.initialize(mcp.V20251125)
			want(t, "a session that is used", p.post(ping).StatusCode, 200)
			p.session = ""
		}
		resp := p.post(initialize(mcp.V20251125))
		want(t, "one too many", resp.StatusCode, http.StatusServiceUnavailable)
		want(t, "again after", resp.Header.Get("Retry-After"), "10")
		want(t, "body", text(t, resp), `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"too many sessions; try again later","data":{"bridge":{}}}}`)
		want(t, "told", strings.Contains(log.String(), "no place for another session"), true)
		want(t, "asked upstream", len(b.convs), 205)
		time.Sleep(session.RecentUse)
		want(t, "a minute later", p.post(initialize(mcp.V20251125)).StatusCode, 200)
		calling.finish(`{}`)
		_ = readEvents(t, <-answer).rest()
		want(t, "the one that called", used.post(ping).StatusCode, 200)
		b.convs[1].push.Push("k", []byte(`{"n":1}`))
		want(t, "the one that listens", strings.HasSuffix(listening.next(), `|{"n":1}`), true)
	})
}

// A conversation may say its last words after it was closed; they still go out.
func TestCallsOfAnEndedSessionGetAnswersThatComeLate(t *testing.T) {
	var log bytes.Buffer
	b := newFake()
	h, p := serve(t, Options{CommitDelay: janitorStep, Logger: zerolog.New(&log).Level(zerolog.InfoLevel)}, b)
	p.initialize(mcp.V20250618)
	answer := p.async(hold)
	k := <-b.held
	resp := <-answer
	conv := b.last()
	conv.mu.Lock()
	conv.open = nil // it answers later
	conv.mu.Unlock()
	_ = h.sessions.Remove(p.session)
	want(t, "ended", p.post(ping).StatusCode, 404)
	want(t, "told", strings.Count(log.String(), "a request named a session that is not here"), 1)
	k.finish(`{"late":true}`)
	want(t, "answer", readEvents(t, resp).rest(), []string{`1-1|{"jsonrpc":"2.0","id":1,"result":{"late":true}}`})
}

func TestSessionHasABoundOnRequestsUnderWay(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{MaxInFlight: 2}, b)
	p.initialize(mcp.V20250326)
	answers := []<-chan *http.Response{p.async(hold), p.async(hold)}
	first, second := <-b.held, <-b.held
	resp := p.post(`{"jsonrpc":"2.0","id":7,"method":"echo"}`)
	want(t, "one more", resp.StatusCode, http.StatusTooManyRequests)
	want(t, "again after", resp.Header.Get("Retry-After"), "1")
	want(t, "body", text(t, resp), `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"too many requests are under way in this session","data":{"bridge":{}}}}`)
	want(t, "answers pass", p.post(`{"jsonrpc":"2.0","id":"q","result":{}}`).StatusCode, 202)
	first.finish(`{}`)
	eventually(t, "a place", func() bool { return p.post(ping).StatusCode == http.StatusOK })
	want(t, "a batch that is too large for it", p.post("["+ping+","+ping+"]").StatusCode, http.StatusTooManyRequests)
	second.finish(`{}`)
	eventually(t, "a place for it", func() bool { return p.post("["+ping+","+ping+"]").StatusCode == http.StatusOK })
	for _, answer := range answers {
		want(t, "answered", (<-answer).StatusCode, 200)
	}
}

func TestPrincipalsAndAddressesHaveABoundOnRequestsUnderWay(t *testing.T) {
	for name, opt := range map[string]rates.Options{
		"principal": {AtOnce: rates.AtOnce{Principal: 2}},
		"address":   {AtOnce: rates.AtOnce{Address: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			_, p := serve(t, Options{Rates: rates.New(opt)}, b)
			p.header = http.Header{"Authorization": {"Bearer a"}}
			p.initialize(mcp.V20250618)
			other := *p
			other.session = ""
			other.initialize(mcp.V20250618)
			answers := []<-chan *http.Response{p.async(hold), p.async(hold)}
			first, second := <-b.held, <-b.held
			third := *p
			third.session = ""
			want(t, "another session", third.post(initialize(mcp.V20250618)).StatusCode, http.StatusTooManyRequests)
			resp := other.post(ping)
			want(t, "one more, in another session", resp.StatusCode, http.StatusTooManyRequests)
			want(t, "again after", resp.Header.Get("Retry-After"), "1")
			want(t, "answers pass", other.post(`{"jsonrpc":"2.0","id":"q","result":{}}`).StatusCode, 202)
			first.finish(`{}`)
			eventually(t, "a place", func() bool { return other.post(ping).StatusCode == http.StatusOK })
			second.finish(`{}`)
			for _, answer := range answers {
				want(t, "answered", (<-answer).StatusCode, 200)
			}
		})
	}
}

// A call that goes on as a task, whose request was answered, is under way all the same.
func TestATaskTakesThePlaceOfItsCall_G3(t *testing.T) {
	for name, opt := range map[string]Options{
		"session":   {MaxInFlight: 1},
		"principal": {Rates: rates.New(rates.Options{AtOnce: rates.AtOnce{Principal: 1}})},
		"address":   {Rates: rates.New(rates.Options{AtOnce: rates.AtOnce{Address: 1}})},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			_, p := serve(t, opt, b)
			p.header = http.Header{"Authorization": {"Bearer a"}}
			p.initialize(mcp.V20251125)
			answer := p.async(hold)
			k := <-b.held
			over := k.Outlast()
			k.finish(`{}`)
			want(t, "answered", (<-answer).StatusCode, http.StatusOK)
			want(t, "one more", p.post(ping).StatusCode, http.StatusTooManyRequests)
			want(t, "about the task", p.post(`{"jsonrpc":"2.0","id":2,"method":"tasks/get"}`).StatusCode, http.StatusOK)
			over()
			eventually(t, "a place", func() bool { return p.post(ping).StatusCode == http.StatusOK })
		})
	}
}

func TestATaskOnAChannelTakesThePlaceOfItsCall_G3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{MaxInFlight: 1}, b)
		l.initialize(mcp.V20251125)
		l.send(hold)
		k := <-b.held
		over := k.Outlast()
		k.finish(`{}`)
		want(t, "answer", l.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		l.send(ping)
		if got := l.next(); !strings.Contains(got, "too many requests") {
			t.Errorf("one more got %s", got)
		}
		l.send(`{"jsonrpc":"2.0","id":2,"method":"tasks/get"}`)
		if got := l.next(); strings.Contains(got, "too many requests") {
			t.Errorf("about the task: %s", got)
		}
		over()
		l.send(ping)
		if got := l.next(); strings.Contains(got, "error") {
			t.Errorf("afterwards: %s", got)
		}
	})
}

func TestATierMayHaveMoreUnderWay(t *testing.T) {
	b := newFake()
	opt := Options{MaxInFlight: 1, TierHeader: "X-Plan", Rates: rates.New(rates.Options{Factor: map[string]float64{"gold": 2}})}
	_, p := serve(t, opt, b)
	p.header = http.Header{"X-Plan": {"gold"}}
	p.initialize(mcp.V20250618)
	answers := []<-chan *http.Response{p.async(hold), p.async(hold)}
	first, second := <-b.held, <-b.held
	want(t, "one more", p.post(ping).StatusCode, http.StatusTooManyRequests)
	first.finish(`{}`)
	second.finish(`{}`)
	for _, answer := range answers {
		want(t, "answered", (<-answer).StatusCode, 200)
	}
}

// addresses returns what makes peers at addresses.
func addresses(t *testing.T, opt Options, b *fakeBackend) func(string) *peer {
	const at = "Test-Address"
	h := NewHTTP(opt, b)
	p := pipeTo(t, h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.Header.Get(at)
		h.ServeHTTP(w, r)
	}))
	return func(address string) *peer {
		from := *p
		from.header = http.Header{at: {address}}
		return &from
	}
}

// flood opens sessions, and uses each, until one is refused, and returns how many there were.
func flood(t *testing.T, from *peer) (opened int) {
	for ; opened < 20; opened++ {
		p := *from
		resp := p.post(initialize(mcp.V20250618))
		if resp.StatusCode != http.StatusOK {
			want(t, "one more from there", resp.StatusCode, http.StatusServiceUnavailable)
			break
		}
		p.session, p.version = resp.Header.Get("Mcp-Session-Id"), string(mcp.V20250618)
		want(t, "a use", p.post(ping).StatusCode, http.StatusOK)
	}
	return opened
}

// Who has many sessions makes room for others of its own, and not those who have few, however
// long these have said nothing.
func TestAStrangerEndsNobodysIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		from := addresses(t, Options{Memory: budget.New(1 << 30), MaxSessions: 16, IdleTimeout: 24 * time.Hour}, b)
		var idle []*peer
		for i := range 4 {
			p := from(fmt.Sprintf("192.0.2.%d:1", 10+i))
			p.asUser(fmt.Sprint("Bearer ", i)).initialize(mcp.V20250618)
			want(t, "a use", p.post(ping).StatusCode, http.StatusOK)
			idle = append(idle, p)
		}
		time.Sleep(3 * time.Hour)
		want(t, "sessions of the stranger", flood(t, from("192.0.2.66:1")), 10)
		want(t, "asked upstream", len(b.convs), 14)
		time.Sleep(session.RecentUse)
		want(t, "sessions of the stranger, a minute later", flood(t, from("192.0.2.66:1")), 10)
		for range 3 {
			from("192.0.2.67:1").initialize(mcp.V20250618)
		}
		for _, p := range idle {
			want(t, "a session of hours ago", p.post(ping).StatusCode, http.StatusOK)
		}
	})
}

// Sessions that are in use do not make room: one client that opens many, and uses each of
// them, is to leave some for others.
func TestTheLastSessionsAreForOthers(t *testing.T) {
	from := addresses(t, Options{Memory: budget.New(1 << 30), MaxSessions: 16}, newFake())
	greedy, modest := from("192.0.2.1:1"), from("192.0.2.2:1")
	want(t, "sessions of one address", flood(t, greedy), 14)
	modest.initialize(mcp.V20250618)
	want(t, "another address", modest.post(ping).StatusCode, http.StatusOK)
}

// Whoever knows a session's id may call with credentials of their own, which the server
// judges, but keeps its owner from nothing.
func TestRequestsOfOthersInASessionTakeNoPlaceOfItsOwner(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{MaxInFlight: 2, Rates: rates.New(rates.Options{Session: rates.Rate{PerSecond: 0.001, Burst: 3}})}, b)
	p.asUser("Bearer alice").initialize(mcp.V20251125)
	mallory := *p
	mallory.header = http.Header{"Authorization": {"Bearer mallory"}}
	const slow = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"hold":true}}`
	answers := []<-chan *http.Response{mallory.async(slow), mallory.async(slow)}
	first, second := <-b.held, <-b.held
	resp := mallory.post(callTool)
	want(t, "one more of theirs", resp.StatusCode, http.StatusTooManyRequests)
	want(t, "body", strings.Contains(text(t, resp), "under way in this session"), true)
	want(t, "and faster than a session may", mallory.post(callTool).StatusCode, http.StatusTooManyRequests)
	want(t, "the owner's", p.post(ping).StatusCode, http.StatusOK)
	want(t, "the owner's next", p.post(ping).StatusCode, http.StatusOK)
	first.finish(`{}`)
	second.finish(`{}`)
	for _, answer := range answers {
		want(t, "answered", (<-answer).StatusCode, 200)
	}
}
