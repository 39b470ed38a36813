package legacy

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

const tenth = 100 << 10 // of the budgets below

// large is a request that is held, with params of a tenth of a budget.
func large(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"hold","params":{"text":"%s"}}`, id, strings.Repeat("x", tenth))
}

func TestWhoHoldsTooMuchIsRefusedAndTheOthersGoOn(t *testing.T) {
	memory := budget.New(15 * tenth)
	b := newFake()
	h, greedy := serve(t, Options{Memory: memory}, b)
	greedy.initialize(mcp.V20250618)
	modest := *greedy
	modest.session = ""
	modest.initialize(mcp.V20250618)
	var answers []<-chan *http.Response
	var calls []*call
	for id := range 4 {
		answers = append(answers, greedy.async(large(id)))
		calls = append(calls, <-b.held)
	}
	for _, chunked := range []bool{false, true} {
		resp := greedy.send(t, large(9), chunked)
		want(t, "one more", resp.StatusCode, http.StatusTooManyRequests)
		want(t, "again after", resp.Header.Get("Retry-After"), "1")
		want(t, "says why", strings.Contains(text(t, resp), "limits.memory"), true)
	}
	s := greedy.live(h)
	s.Account().Charge(tenth)
	resp := greedy.post(ping)
	want(t, "a small one", resp.StatusCode, http.StatusTooManyRequests)
	want(t, "says to which", strings.Contains(text(t, resp), `"id":`), true)
	want(t, "an answer, which may make room", greedy.post(`{"jsonrpc":"2.0","id":"q","result":{}}`).StatusCode, http.StatusAccepted)
	want(t, "somebody else", modest.post(ping).StatusCode, http.StatusOK)
	answers = append(answers, modest.async(large(5)))
	for _, c := range append(calls, <-b.held) {
		c.finish(`{}`)
	}
	for _, answer := range answers {
		want(t, "what was begun", (<-answer).StatusCode, http.StatusOK)
	}
	want(t, "sessions", h.Sessions(), 2)
}

// send posts a body, with its length or without.
func (p *peer) send(t *testing.T, body string, chunked bool) *http.Response {
	t.Helper()
	req := p.request(http.MethodPost, body)
	if chunked {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), -1
	}
	return p.do(req)
}

// A session costs a stranger nothing, nor does a token that nobody has looked at: however
// many come from one address, together they take what one tenant may, and others have their
// share.
func TestSessionsOfStrangersOfOneAddressShareWhatOneMayHold(t *testing.T) {
	for name, as := range map[string]func(int) string{
		"without credentials": func(int) string { return "" },
		"with made-up tokens": func(i int) string { return fmt.Sprint("Bearer ", i) },
	} {
		t.Run(name, func(t *testing.T) { strangers(t, as) })
	}
}

func strangers(t *testing.T, as func(int) string) {
	memory := budget.New(20 * tenth)
	b := newFake()
	h := NewHTTP(Options{Memory: memory, Vouched: func(string) bool { return false }}, b)
	from := func(address string) *peer {
		at := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = address
			h.ServeHTTP(w, r)
		})
		p := &peer{t: t, client: client(t), url: start(t, h, newServer(at)), header: http.Header{}}
		p.initialize(mcp.V20250618)
		return p
	}
	greedy, modest := from("[2001:db8::1]:1"), from("192.0.2.1:1")
	var answers []<-chan *http.Response
	var calls []*call
	for refused := false; !refused; {
		neighbour := *greedy
		neighbour.session = ""
		if token := as(len(calls)); token != "" {
			neighbour.header = http.Header{"Authorization": {token}}
		}
		neighbour.initialize(mcp.V20250618)
		answer := neighbour.async(large(1))
		select {
		case c := <-b.held:
			answers, calls = append(answers, answer), append(calls, c)
		case resp := <-answer:
			want(t, "one more from there", resp.StatusCode, http.StatusTooManyRequests)
			refused = true
		}
	}
	want(t, "less than half is held from there", len(calls) < 11, true)
	for id := range 3 {
		answers = append(answers, modest.async(large(id)))
		calls = append(calls, <-b.held)
	}
	for _, c := range calls {
		c.finish(`{}`)
	}
	for _, answer := range answers {
		want(t, "what was begun", (<-answer).StatusCode, http.StatusOK)
	}
}

// What a session holds is its principal's from when that is vouched for: then its neighbours
// have their address for themselves.
func TestWhatASessionHoldsMovesToWhomTheServerVouchesFor(t *testing.T) {
	memory := budget.New(20 * tenth)
	b := newFake()
	var vouched atomic.Bool
	_, p := serve(t, Options{Memory: memory, Vouched: func(string) bool { return vouched.Load() }}, b)
	p.header = http.Header{"Authorization": {"Bearer a"}}
	p.initialize(mcp.V20250618)
	answer := p.async(large(1))
	c := <-b.held
	const address = "address 127.0.0.1"
	used := func(name string) bool { return memory.Guest(name).Tight() }
	memory.Guest(address).Charge(6 * tenth)
	want(t, "its address holds much", used(address), true)
	vouched.Store(true)
	memory.Guest(address).Give(6 * tenth)
	want(t, "a request", p.post(ping).StatusCode, http.StatusOK)
	memory.Guest(address).Charge(6 * tenth)
	want(t, "its address holds less", used(address), false)
	memory.Guest(address).Give(6 * tenth)
	c.finish(`{}`)
	want(t, "what was begun", (<-answer).StatusCode, http.StatusOK)
}

func TestNewcomersAreRefusedWhenMemoryIsShort(t *testing.T) {
	memory := budget.New(10 * tenth)
	_, p := serve(t, Options{Memory: memory}, newFake())
	p.initialize(mcp.V20250618)
	memory.Guest("somebody").Charge(9 * tenth)
	used := *p
	p.session = ""
	resp := p.post(initialize(mcp.V20250618))
	want(t, "a newcomer", resp.StatusCode, http.StatusServiceUnavailable)
	want(t, "again after", resp.Header.Get("Retry-After"), "10")
	want(t, "whoever is there", used.post(ping).StatusCode, http.StatusOK)
	memory.Guest("somebody").Give(9 * tenth)
	want(t, "afterwards", p.post(initialize(mcp.V20250618)).StatusCode, http.StatusOK)
}

func TestNothingIsLeftChargedWhenAllIsOver(t *testing.T) {
	memory := budget.New(100 * tenth)
	b := newFake()
	h, p := serve(t, Options{Memory: memory}, b)
	p.initialize(mcp.V20250326)
	answer := p.async(large(1))
	(<-b.held).finish(`{}`)
	<-answer
	for _, body := range []string{ping, "[" + ping + "," + ping + "]", `{"jsonrpc":"2.0","method":"n"}`, `{`, `{"jsonrpc":"2.0","id":"q","result":{}}`} {
		_ = text(t, p.post(body))
	}
	id := p.session
	p.session = ""
	_ = text(t, p.post(ping)) // without a session
	eventually(t, "only the session's own charge is left", func() bool {
		return memory.Used() > session.Cost && memory.Used() < session.Cost+1<<10
	})
	_ = h.sessions.Remove(id)
	want(t, "after the session", memory.Used(), 0)
}

func TestConnectionsAreChargedToo(t *testing.T) {
	memory := budget.New(10 * tenth)
	b := newFake()
	l := serveStdio(t, Options{Memory: memory}, b)
	l.initialize(mcp.V20250618)
	for id := range 4 {
		l.send(large(10 + id))
		<-b.held
	}
	l.send(large(20))
	got := l.next()
	want(t, "one more", strings.HasPrefix(got, `{"jsonrpc":"2.0","id":20,"error":{"code":-32603,"message":"this session holds too much`), true)
}

// What a request brings in its head is kept as long as it is under way.
func TestLargeHeadsAreCharged(t *testing.T) {
	const filler = 32 << 10
	memory := budget.New(100 * tenth)
	b := newFake()
	h, sse := serveAll(t, Options{Memory: memory}, b)
	p := *sse
	p.url += "/mcp"
	for name, header := range map[string]http.Header{
		"one field":   {"X-Filler": {strings.Repeat("x", filler)}},
		"many fields": {"X-Filler": slices.Repeat([]string{""}, filler/100)},
	} {
		sse.header, p.header = header, header
		answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
		c := <-b.held
		want(t, name+": a call without a session", memory.Used() > filler, true)
		c.finish(`{}`)
		<-answer
		eventually(t, "nothing is left of the call", func() bool { return memory.Used() == 0 })

		p.initialize(mcp.V20250618)
		eventually(t, "the session's own charge is left", func() bool { return memory.Used() < filler })
		stream := p.get("")
		want(t, name+": a stream", memory.Used() > filler, true)
		_ = stream.Body.Close()
		eventually(t, "nothing is left of the stream", func() bool { return memory.Used() < filler })
		_ = h.sessions.Remove(p.session)
		p.session = ""

		connection, _, _ := sse.openSSE()
		want(t, name+": a connection", memory.Used() > session.Cost+filler, true)
		_ = connection.Body.Close()
		eventually(t, "nothing is left of the connection", func() bool { return memory.Used() == 0 })
	}
}

// A call that waits is kept with all that its rounds need: the text of its record is
// charged, and while it is written what that takes.
func TestWhatIsKeptOfACallIsCharged(t *testing.T) {
	memory := budget.New(30 * tenth)
	b := newFake()
	opt := stored()
	opt.Memory = memory
	_, p := serve(t, opt, b)
	p.initialize(mcp.V20250618)
	answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
	c := <-b.held
	before := memory.Used()
	question := downstream.Message{Message: jsonrpc.Message{Method: "elicitation/create", ID: `"q"`}}
	keep := func(size int, question *downstream.Message) error {
		return c.Checkpointer().Save(downstream.Checkpoint{N: 1, TTL: time.Hour, Record: make([]byte, size), Message: question})
	}
	want(t, "a record for which there is no room", budget.Short(keep(3*tenth, &question)), true)
	want(t, "and of which nothing stays", memory.Used() < before+tenth/2, true)
	if err := keep(tenth, &question); err != nil {
		t.Fatal(err)
	}
	want(t, "what stays of one", (memory.Used()-before)/tenth, 1)
	want(t, "an answer, which makes room", keep(3*tenth, nil), nil)
	c.finish(`{}`)
	want(t, "the call", (<-answer).StatusCode, http.StatusOK)
	eventually(t, "nothing of it is left", func() bool { return memory.Used() < before })
}

// A session that cannot come back, for its server has become another one, is removed and makes room, in this process, too.
func TestASessionWhoseServerHasBecomeAnotherMakesRoom_A16(t *testing.T) {
	opt, b := stored(), newFake()
	opt.StoreRoom = budget.NewRoom(20 * tenth)
	h, p := serve(t, opt, b)
	p.initialize(mcp.V20250618)
	h.Close()
	want(t, "it is kept", opt.StoreRoom.Used() > 0, true)
	b = newFake()
	b.restore = func([]byte) error { return downstream.ErrForeignEra }
	_, p = p.another(opt, b)
	want(t, "a request", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), http.StatusNotFound)
	list, err := opt.Store.Load(t.Context(), store.Name("/mcp\n"+p.session))
	if err != nil || len(list) > 0 {
		t.Errorf("%d records are left: %v", len(list), err)
	}
	want(t, "what is taken", opt.StoreRoom.Used(), int64(0))
}

// What a client has kept in the store is charged there for as long as it is kept, also when its
// call is over; what there is no room for is not asked, and not kept.
func TestWhatIsKeptInAStoreIsBounded(t *testing.T) {
	b := newFake()
	opt := stored()
	opt.StoreRoom = budget.NewRoom(20 * tenth)
	_, p := serve(t, opt, b)
	p.initialize(mcp.V20250618)
	session := opt.StoreRoom.Used()
	want(t, "a session takes something", session > 0, true)
	hold := func() (*call, <-chan *http.Response) {
		answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold"}`)
		return <-b.held, answer
	}
	question := downstream.Message{Message: jsonrpc.Message{Method: "elicitation/create", ID: `"q"`}}
	keep := func(c *call, size int, question *downstream.Message) error {
		return c.Checkpointer().Save(downstream.Checkpoint{N: 1, TTL: time.Hour, Record: make([]byte, size), Message: question})
	}
	kept := func() int64 { return (opt.StoreRoom.Used() - session + tenth/2) / tenth }

	first, answer := hold()
	want(t, "a question for which there is no room", keep(first, 21*tenth, &question), budget.ErrNoRoom)
	want(t, "one for which there is some", keep(first, 12*tenth, &question), nil)
	want(t, "what is kept", kept(), 12)
	want(t, "its answer, which makes room", keep(first, 19*tenth, nil), nil)
	second, other := hold()
	want(t, "the next question", keep(second, 2*tenth, &question), budget.ErrNoRoom)
	second.finish(`{}`)
	<-other
	first.finish(`"` + strings.Repeat("x", 5*tenth) + `"`)
	<-answer
	eventually(t, "the response takes the place of the call", func() bool { return kept() == 5 })

	third, answer := hold()
	want(t, "a question", keep(third, 12*tenth, &question), nil)
	third.finish(`"` + strings.Repeat("x", 18*tenth) + `"`)
	want(t, "a response for which there is no room comes all the same", (<-answer).StatusCode, http.StatusOK)
	eventually(t, "and is not kept", func() bool { return kept() == 5 })

	want(t, "DELETE", p.do(p.request(http.MethodDelete, "")).StatusCode, http.StatusNoContent)
	eventually(t, "the session makes room", func() bool { return opt.StoreRoom.Used() < 6*tenth })
}
