package legacy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

const (
	alice   = "Bearer alice"
	mallory = "Bearer mallory"
	holdIt  = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"hold":true}}`
)

// begins has somebody make a call that the server holds and of which a note has left, and returns it with
// its stream as it comes.
func (p *peer) begins(b *fakeBackend, auth string) (*call, *events) {
	p.t.Helper()
	answer := p.asUser(auth).async(holdIt)
	k := <-b.held
	k.Send([]byte(note))
	ev := readEvents(p.t, <-answer)
	ev.next()
	want(p.t, "the note", strings.HasSuffix(ev.next(), note), true)
	return k, ev
}

func (p *peer) statusOf(auth, last string) int {
	p.t.Helper()
	return p.asUser(auth).get(last).StatusCode
}

// visited is a session of alice's in which mallory has made a call.
func visited(t *testing.T, opt Options) (*fakeBackend, *peer, *call, *events) {
	b := newFake()
	_, p := serve(t, opt, b)
	p.asUser(alice).initialize(mcp.V20251125)
	k, ev := p.begins(b, mallory)
	return b, p, k, ev
}

// The owner of a session gets no stream of somebody else's call, open or ended: neither its questions
// nor its result.
func TestAStreamIsResumedOnlyByWhoMadeItsCall_E24_H8(t *testing.T) {
	for name, opt := range map[string]Options{"in memory": {}, "with a store": stored()} {
		_, p, k, ev := visited(t, opt)
		of := streamOf(t, k)
		want(t, name+": the owner", p.statusOf(alice, of+"-1"), 400)
		want(t, name+": somebody else", p.statusOf("Bearer eve", of+"-1"), 404)
		k.Send([]byte(`{"n":2}`))
		want(t, name+": the stream goes on", ev.next(), of+`-3|{"n":2}`)
		resumed := readEvents(t, p.asUser(mallory).get(of+"-2"))
		want(t, name+": to who made the call", resumed.next(), of+`-3|{"n":2}`)
		k.finish(`{"secret":1}`)
		want(t, name+": the result", resumed.rest(), []string{of + `-4|{"jsonrpc":"2.0","id":9,"result":{"secret":1}}`})
		want(t, name+": the ended stream to the owner", p.statusOf(alice, of+"-3"), 400)
		want(t, name+": who knows what was said last", p.statusOf(alice, of+"-4"), 400)
		want(t, name+": to who made the call", readEvents(t, p.asUser(mallory).get(of+"-3")).rest(), []string{of + `-4|{"jsonrpc":"2.0","id":9,"result":{"secret":1}}`})
		want(t, name+": nothing else of the session", p.get("").StatusCode, 404)
		want(t, name+": an event that there is not", p.statusOf(mallory, of+"-99"), 400)
		want(t, name+": a stream that there is not", p.statusOf(mallory, of+"9-1"), 404)
	}
}

// A visitor gets no stream of the owner's.
func TestAVisitorGetsNoStreamOfTheOwners_E24_H8(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.asUser(alice).initialize(mcp.V20251125)
	k, ev := p.begins(b, alice)
	want(t, "the owner's", p.statusOf(mallory, "1-1"), 404)
	k.finish(`{}`)
	want(t, "it went on", len(ev.rest()), 1)
	want(t, "its end", p.statusOf(mallory, "1-1"), 404)
}

// Where a session is bound to nobody, what was begun without credentials is not for who brings some.
func TestWhatNobodyInParticularBeganIsNotForAVisitor_E24(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20251125)
	answer := p.async(holdIt)
	k := <-b.held
	k.Send([]byte(note))
	<-answer
	want(t, "somebody's", p.statusOf(mallory, "1-1"), 404)
	p.header.Del("Authorization")
	want(t, "nobody's", p.get("1-1").StatusCode, 200)
	k.finish(`{}`)
}

// Whoever owns a session by a newer token fetches what was begun with the one before, and what the newer one
// began before it was accepted.
func TestStreamsAreResumedWithANewerToken_E24_H6(t *testing.T) {
	b, first, newer := newFake(), jwt(alicesFirst, "a"), jwt(alicesNewer, "b")
	_, p := serve(t, Options{}, b)
	p.asUser(first).initialize(mcp.V20251125)
	before, _ := p.begins(b, first)
	early, _ := p.begins(b, newer)
	want(t, "before it is accepted: what it began", p.statusOf(newer, "2-1"), 200)
	want(t, "and no other", p.statusOf(newer, "1-1"), 404)
	b.last().push.Accepted(early.caller)
	for _, auth := range []string{newer, first} {
		want(t, "what the first began", p.statusOf(auth, "1-1"), 200)
	}
	want(t, "what the newer began", p.statusOf(newer, "2-1"), 200)
	before.finish(`{}`)
	early.finish(`{}`)
}

// streamOf is the number of a call's stream as its event ids have it.
func streamOf(t *testing.T, k *call) string {
	t.Helper()
	return string(jsonrpc.IntID(int64(k.Address().Stream)))
}

// keep has a question of a call be kept and sent.
func (k *call) keep(t *testing.T) {
	t.Helper()
	question := downstream.Question(`"q"`, "elicitation/create", []byte(`{}`))
	err := k.Checkpointer().Save(downstream.Checkpoint{Request: k.req.ID, N: 1, Record: []byte(`{}`), Open: []jsonrpc.ID{`"q"`}, Message: &question, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
}

// It is so wherever the call is: a process that finds it in the store asks who comes for it, and takes it over for
// nobody else; its last word, too.
func TestAKeptStreamIsResumedOnlyByWhoMadeItsCall_E24_H8(t *testing.T) {
	for _, over := range []bool{false, true} {
		opt := stored()
		_, p, k, _ := visited(t, opt)
		k.keep(t)
		of := streamOf(t, k)
		if over {
			k.finish(`{"secret":1}`)
		}
		next := newFake()
		taken := make(chan downstream.Reply, 4)
		next.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			taken <- out
			return nil
		}
		_, q := p.another(opt, next)
		want(t, "the owner", q.statusOf(alice, of+"-2"), 400)
		want(t, "somebody else", q.statusOf("Bearer eve", of+"-2"), 404)
		want(t, "taken over", len(taken), 0)
		resp := q.asUser(mallory).get(of + "-2")
		want(t, "who made the call", resp.StatusCode, 200)
		ev := readEvents(t, resp)
		if over {
			want(t, "the last word", ev.rest(), []string{of + `-4|{"jsonrpc":"2.0","id":9,"result":{"secret":1}}`})
		} else {
			want(t, "the question", strings.HasPrefix(ev.next(), of+"-3|"), true)
			want(t, "taken over", len(taken), 1)
		}
		want(t, "the owner, when it is here", q.statusOf(alice, of+"-2"), 400)
		if !over {
			(<-taken).Abandon()
		}
	}
}

// What a visitor has under way takes no place of the owner's when it comes back from the store either.
func TestACallOfAVisitorThatComesBackTakesNoPlaceOfTheOwners(t *testing.T) {
	opt := stored()
	opt.MaxInFlight = 1
	_, p, k, _ := visited(t, opt)
	k.keep(t)
	next, taken := newFake(), make(chan downstream.Reply, 1)
	next.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
		taken <- out
		return nil
	}
	_, q := p.another(opt, next)
	resumed := readEvents(t, q.asUser(mallory).get(streamOf(t, k)+"-2"))
	resumed.next()
	out := <-taken
	want(t, "one more of the visitor's", q.asUser(mallory).status(callTool), http.StatusTooManyRequests)
	want(t, "the owner's", q.asUser(alice).status(ping), http.StatusOK)
	out.Abandon()
	resumed.rest()
	want(t, "the next of the visitor's", q.asUser(mallory).status(callTool), http.StatusOK)
}

// A replica that was asked by another one says of a stream that is not the caller's what it says of none.
func TestAForwardedRequestFindsNoStreamOfSomebodyElses_E24(t *testing.T) {
	opt, b := stored(), newFake()
	opt.Replica = downstream.NewReplicaID()
	h := NewHTTP(opt, b)
	p := pipeTo(t, h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Forwarded-Here") != "" {
			r = Forwarded(r)
		}
		h.ServeHTTP(w, r)
	}))
	p.asUser(alice).initialize(mcp.V20251125)
	k, _ := p.begins(b, mallory)
	of := streamOf(t, k)
	p.header.Set("Forwarded-Here", "yes")
	want(t, "the owner", p.statusOf(alice, of+"-1"), http.StatusMisdirectedRequest)
	want(t, "of a stream that there is not", p.statusOf(alice, fmt.Sprintf("%d-1", k.Address().Stream+7)), http.StatusMisdirectedRequest)
	want(t, "who made the call", p.statusOf(mallory, of+"-1"), 200)
	k.finish(`{}`)
}
