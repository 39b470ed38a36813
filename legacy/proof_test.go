package legacy

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

const (
	alicesFirst = `{"iss":"https://as","sub":"alice","jti":"1"}`
	alicesNewer = `{"iss":"https://as","sub":"alice","jti":"2"}`
	cancelHeld  = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
)

// judge is a server that knows some tokens from what anybody can write, and is asked about them.
type judge struct {
	mu    sync.Mutex
	known map[string]bool
	asked []string
	hold  chan struct{} // it answers when this is closed; nil: at once
}

func (j *judge) knows(_, _, newer string, _ bool) bool {
	if j.hold != nil {
		<-j.hold
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, newer)
	return j.known[newer]
}

func (p *peer) delete() *http.Response { return p.do(p.request(http.MethodDelete, "")) }

// owners are the requests about what is a session's owner's, and how they are answered to him.
var owners = map[string]struct {
	send func(*peer) *http.Response
	want int
}{
	"tasks/get":                {func(p *peer) *http.Response { return p.post(`{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`) }, 200},
	"tasks/result":             {func(p *peer) *http.Response { return p.post(`{"jsonrpc":"2.0","id":1,"method":"tasks/result"}`) }, 200},
	"ping":                     {func(p *peer) *http.Response { return p.post(ping) }, 200},
	"GET":                      {func(p *peer) *http.Response { return p.get("") }, 200},
	"GET of a stream that was": {func(p *peer) *http.Response { return p.get("99-1") }, 400},
	"DELETE":                   {(*peer).delete, 204},
}

// A client that only waits for what it has under way makes no call by which the server accepts
// its newer token.
func TestWhatIsItsOwnersIsFoundWithANewerTokenThatTheServerKnows_H6(t *testing.T) {
	for name, one := range owners {
		b, newer, forged := newFake(), jwt(alicesNewer, "b"), jwt(alicesNewer, "x")
		_, p := serve(t, Options{Genuine: (&judge{known: map[string]bool{newer: true}}).knows}, b)
		p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
		want(t, name+": forged", one.send(p.asUser(forged)).StatusCode, 404)
		want(t, name+": of somebody else", one.send(p.asUser(jwt(`{"iss":"https://as","sub":"bob"}`, "b"))).StatusCode, 404)
		conv := b.last()
		want(t, name+": before", len(conv.goesBy), 0)
		want(t, name+": newer", one.send(p.asUser(newer)).StatusCode, one.want)
		want(t, name+": what the session does by itself goes on with", conv.goesBy, []string{newer}) // H-2
	}
}

func TestAnswersAndCancellationsWithANewerTokenAreItsOwners_H6(t *testing.T) {
	b, first, newer, forged := newFake(), jwt(alicesFirst, "a"), jwt(alicesNewer, "b"), jwt(alicesNewer, "x")
	_, p := serve(t, Options{Genuine: (&judge{known: map[string]bool{newer: true}}).knows}, b)
	p.asUser(first).initialize(mcp.V20251125)
	opened := p.callAs(t, b, first)
	for _, body := range []string{answerToLeg, cancelHeld} {
		want(t, "forged", p.asUser(forged).post(body).StatusCode, 404)
		want(t, "newer", p.asUser(newer).post(body).StatusCode, 202)
	}
	want(t, "answers as the owner", b.last().answerer, []string{opened.Principal})
	notifiers := b.last().notifier
	want(t, "cancels as the owner", notifiers[len(notifiers)-1], opened.Principal)
}

// Whoever knows the id of a session that is bound to nobody could do everything in it.
func TestWhatIsNobodysIsAnsweredByEverybody_H6(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20251125)
	p.asUser("Bearer alice")
	want(t, "an answer to nothing", p.post(answerToLeg).StatusCode, 202)
	want(t, "a cancellation of nothing", p.post(cancelHeld).StatusCode, 202)
}

// A replica that is yet to be told of the token that another one has bound the session to looks
// before it turns its owner's answer away.
func TestATokenThatAnotherReplicaHasAcceptedIsNotTurnedAway_H6(t *testing.T) {
	shared := &shaky{Store: store.NewMemory(1000)} // nobody is told of any change
	opt := Options{Store: shared, StoreScope: "/mcp"}
	a, b := newFake(), newFake()
	_, p := serve(t, opt, a)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	opened := p.callAs(t, a, jwt(alicesFirst, "a"))
	_, q := p.another(opt, b)
	want(t, "elsewhere", q.post(ping).StatusCode, 200)
	p.callAs(t, a, jwt(alicesNewer, "b"))
	for _, body := range []string{answerToLeg, cancelHeld} {
		want(t, "somebody else", q.asUser("Bearer opaque").post(body).StatusCode, 404)
		shared.away.Store(true)
		want(t, "while nobody knows", q.post(body).StatusCode, 503)
		shared.away.Store(false)
	}
	want(t, "the owner's answer", q.asUser(jwt(alicesNewer, "b")).post(answerToLeg).StatusCode, 202)
	want(t, "answers as the owner", b.last().answerer, []string{opened.Principal})
}

// Who the session is bound to is known by what it was known by before that: a call may have been
// made with it.
func TestWhoTakesASessionOverIsWhoMadeCallsInItBefore_H6(t *testing.T) {
	opt, b := stored(), newFake()
	_, p := serve(t, opt, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	owner := p.callAs(t, b, jwt(alicesFirst, "a"))
	for n := range 10 { // the newest are remembered
		before := p.callAs(t, b, jwt(alicesFirst, fmt.Sprint(n)))
		after := p.callAs(t, b, jwt(alicesFirst, fmt.Sprint(n)))
		want(t, "it is who opened the session", after.Principal, owner.Principal)
		want(t, "and who made the call", after.Owns(before.Principal), true)
		want(t, "which the owner did not", owner.Owns(before.Principal), false)
		if len(after.Also) > 8 {
			t.Fatalf("%d are remembered", len(after.Also))
		}
	}
	here := p.callAs(t, b, jwt(alicesFirst, "9"))
	_, q := p.another(opt, b)
	there := q.callAs(t, b, jwt(alicesFirst, "9"))
	want(t, "elsewhere, too", there.Also, here.Also)
}

// Nobody who is not its owner could fetch a task.
func TestACallAsATaskWithANewerTokenIsItsOwners_H6(t *testing.T) {
	b, newer := newFake(), jwt(alicesNewer, "b")
	_, p := serve(t, Options{Genuine: (&judge{known: map[string]bool{newer: true}}).knows}, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	answer := p.asUser(newer).async(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"hold":true,"task":{}}}`)
	k := <-b.held
	want(t, "unproven", k.caller.Unproven, false)
	k.finish(`{}`)
	want(t, "status", (<-answer).StatusCode, 200)
}

// A call that was to be made again is its owner's, whose token has been renewed meanwhile: otherwise the person
// would be asked once more.
func TestACallThatIsMadeAgainWithANewerTokenIsItsOwners_H6(t *testing.T) {
	for _, awaited := range []bool{false, true} {
		b, first, newer := newFake(), jwt(alicesFirst, "a"), jwt(alicesNewer, "b")
		server := &judge{known: map[string]bool{newer: true}}
		_, p := serve(t, Options{Genuine: server.knows}, b)
		p.asUser(first).initialize(mcp.V20251125)
		b.last().awaits = awaited
		answer := p.asUser(newer).async(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"hold":true}}`)
		k := <-b.held
		want(t, "unproven", k.caller.Unproven, !awaited)
		k.finish(`{}`)
		want(t, "status", (<-answer).StatusCode, 200)
	}
}

func TestAnArrayBringsANewerToken_E1_H6(t *testing.T) {
	b, newer := newFake(), jwt(alicesNewer, "b")
	_, p := serve(t, Options{Genuine: (&judge{known: map[string]bool{newer: true}}).knows}, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20250326)
	const array = `[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`
	want(t, "forged", p.asUser(jwt(alicesNewer, "x")).post(array).StatusCode, 404)
	want(t, "newer", p.asUser(newer).post(array).StatusCode, 200)
}

func TestOneTokenIsProvenOnce_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newer := jwt(alicesNewer, "b")
		server := &judge{known: map[string]bool{newer: true}, hold: make(chan struct{})}
		_, p := servePipe(t, Options{Genuine: server.knows}, newFake())
		p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
		p.asUser(newer)
		var all []<-chan *http.Response
		for range 5 {
			all = append(all, p.async(ping))
		}
		synctest.Wait()
		close(server.hold)
		for _, one := range all {
			want(t, "ping", (<-one).StatusCode, 200)
		}
		want(t, "asked", server.asked, []string{newer})
	})
}

// Whoever knows a session's id has the server asked as seldom as they would ask it themselves.
func TestMadeUpTokensAreSeldomAskedAbout_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newer, server := jwt(alicesNewer, "b"), &judge{}
		_, p := servePipe(t, Options{Genuine: server.knows, Vouched: func(string) bool { return false }}, newFake())
		p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
		for range 5 {
			want(t, "the same", p.asUser(newer).delete().StatusCode, 404)
		}
		want(t, "asked about one token", len(server.asked), 1)
		for n := range 50 {
			want(t, "another", p.asUser(jwt(alicesNewer, fmt.Sprint(n))).delete().StatusCode, 404)
		}
		if n := len(server.asked); n > 5 {
			t.Errorf("asked about %d tokens", n)
		}
		server.known = map[string]bool{newer: true}
		time.Sleep(time.Minute)
		want(t, "the owner's, later", p.asUser(newer).delete().StatusCode, 204)
	})
}

// A server from which nothing can be told may yet accept the token for something: that it could
// not be told before does not count against it then.
func TestATokenThatCouldNotBeProvenIsStillAccepted_H6(t *testing.T) {
	b, newer := newFake(), jwt(alicesNewer, "b")
	_, p := serve(t, Options{Genuine: func(_, _, _ string, accepted bool) bool { return accepted }}, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	want(t, "ping before", p.asUser(newer).post(ping).StatusCode, 404)
	p.callAs(t, b, newer)
	want(t, "ping after", p.post(ping).StatusCode, 200)
}

// Where sessions are kept, so is whose they are now: another process need not ask again.
func TestAProvenTokenIsProvenForOtherProcesses_H6(t *testing.T) {
	newer, server := jwt(alicesNewer, "b"), &judge{known: map[string]bool{jwt(alicesNewer, "b"): true}}
	opt := stored()
	opt.Genuine = server.knows
	b := newFake()
	_, p := serve(t, opt, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	want(t, "here", p.asUser(newer).post(ping).StatusCode, 200)
	_, q := p.another(opt, b)
	want(t, "elsewhere", q.asUser(newer).post(ping).StatusCode, 200)
	want(t, "asked", server.asked, []string{newer})
}

// loud is a store that replicas share: it tells all of each change.
type loud struct {
	store.Store
	mu   sync.Mutex
	told []func(string)
}

func (s *loud) Watch(changed func(string)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, changed)
	return true
}

func (s *loud) Commit(ctx context.Context, session string, changes ...store.Change) error {
	err := s.Store.Commit(ctx, session, changes...)
	s.mu.Lock()
	told := slices.Clone(s.told)
	s.mu.Unlock()
	for _, changed := range told {
		changed(session)
	}
	return err
}

// A replica where a session listens goes on with the token that was brought to another one.
func TestATokenThatAnotherReplicaWasBroughtIsUsedHere_H2(t *testing.T) {
	newer := jwt(alicesNewer, "b")
	opt := stored()
	opt.Store, opt.Genuine = &loud{Store: opt.Store}, (&judge{known: map[string]bool{newer: true}}).knows
	b := newFake()
	_, p := serve(t, opt, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	want(t, "GET", p.get("").StatusCode, 200)
	_, q := p.another(opt, newFake())
	want(t, "elsewhere", q.asUser(newer).post(ping).StatusCode, 200)
	conv := b.last()
	eventually(t, "it goes on with the newer token", func() bool {
		conv.mu.Lock()
		defer conv.mu.Unlock()
		return slices.Equal(conv.goesBy, []string{newer})
	})
}

// What another replica has changed of a session takes back no token that it was just bound to here.
func TestAChangeElsewhereTakesNoTokenBack_H6(t *testing.T) {
	first, newer := jwt(alicesFirst, "a"), jwt(alicesNewer, "b")
	opt := stored()
	opt.Store, opt.Genuine = &shaky{Store: opt.Store}, (&judge{known: map[string]bool{newer: true}}).knows // of which nobody hears
	_, p := serve(t, opt, newFake())
	p.asUser(first).initialize(mcp.V20251125)
	elsewhere := newFake()
	_, q := p.another(opt, elsewhere)
	want(t, "elsewhere", q.asUser(first).post(ping).StatusCode, 200)
	elsewhere.last().setLevel("debug")
	want(t, "newer", p.asUser(newer).post(ping).StatusCode, 200)
	want(t, "and again", p.post(ping).StatusCode, 200)
}

// slowly has a server that takes its time to say what it thinks of a newer token: longer than a session stays in memory that nobody uses.
func slowly(t *testing.T, genuine bool, send func(q *peer) *http.Response) (h *HTTP, b *fakeBackend, q *peer, conv *fakeConv, resp *http.Response) {
	t.Helper()
	opt := stored()
	b = newFake()
	opt.Replica, opt.Unload, opt.MaxUnloaded = homeID, time.Second, 100
	opt.Genuine = func(string, string, string, bool) bool {
		time.Sleep(3100 * time.Millisecond) // and no round of who leaves begins just then
		return genuine
	}
	h, p := servePipe(t, opt, b)
	p.asUser(jwt(alicesFirst, "a")).initialize(mcp.V20251125)
	conv, q = b.last(), p.asUser(jwt(alicesNewer, "b"))
	conv.rests.Store(true)
	return h, b, q, conv, send(q)
}

const plainEcho = `{"jsonrpc":"2.0","id":1,"method":"echo"}`

func TestASessionIsEndedWhoseClientTheServerIsSlowToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, q, _, resp := slowly(t, true, (*peer).delete)
		want(t, "ended", resp.StatusCode, 204)
		want(t, "a request", q.status(plainEcho), 404)
	})
}

func TestASessionStaysInMemoryWhileTheServerIsAskedAboutAToken(t *testing.T) {
	callOfATask := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}`
	for name, one := range map[string]struct {
		genuine bool
		send    func(q *peer) *http.Response
	}{
		"what is the owner's":         {true, func(q *peer) *http.Response { return q.post(ping) }},
		"a call of somebody else":     {false, func(q *peer) *http.Response { return q.post(callOfATask) }},
		"who listens":                 {true, func(q *peer) *http.Response { return q.get("") }},
		"who comes back for a stream": {true, func(q *peer) *http.Response { return q.get("99-1") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, b, q, conv, resp := slowly(t, one.genuine, one.send)
				defer func() { _ = resp.Body.Close() }()
				if resp.StatusCode == http.StatusNotFound {
					t.Error("its session was not found")
				}
				if !one.genuine {
					q = q.asUser(jwt(alicesFirst, "a"))
				}
				want(t, "a request", q.status(plainEcho), 200)
				if b.last() != conv {
					t.Error("its session was brought back beside itself")
				}
			})
		})
	}
}

func TestASessionIsEndedThatHasLeftMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, b, q, conv, _ := slowly(t, true, func(q *peer) *http.Response { return q.post(ping) })
		time.Sleep(5 * time.Second) // it has left
		want(t, "live", h.sessions.Len(), 0)
		if err := h.sessions.Remove(q.session); err != nil {
			t.Fatal(err)
		}
		want(t, "a request", q.status(plainEcho), 404)
		if b.last() == conv {
			t.Error("it had not left memory")
		}
	})
}
