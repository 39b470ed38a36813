package legacy

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// neighbour is another replica: it has what was taken over.
type neighbour struct{ nobody }

const (
	homeID      downstream.ReplicaID = 7
	neighbourID downstream.ReplicaID = 8
)

func (neighbour) Forward(w http.ResponseWriter, _ *http.Request, _ []byte, to downstream.ReplicaID) bool {
	if to != neighbourID {
		return false
	}
	w.WriteHeader(http.StatusTeapot)
	return true
}

// fenced is a call of a home that another replica has taken for dead, and does not know yet.
type fenced struct {
	t      *testing.T
	h      *HTTP
	b      *fakeBackend
	p      *peer
	store  *shaky
	call   *call
	conv   *fakeConv
	answer *http.Response
	stream string // number of its stream
}

// newFenced makes a call whose question is kept. To be used in a bubble.
func newFenced(t *testing.T) *fenced { return fencedBy(t, neighbour{}) }

func fencedBy(t *testing.T, peers Peers) *fenced {
	return fencedIn(t, &shaky{Store: stored().Store}, peers)
}

func fencedIn(t *testing.T, s *shaky, peers Peers) *fenced {
	opt := stored()
	f := &fenced{t: t, store: s}
	opt.Store, opt.Replica, opt.Peers, opt.StoreWait = f.store, homeID, peers, time.Hour
	f.b = newFake()
	f.h, f.p = servePipe(t, opt, f.b)
	f.p.initialize(mcp.V20250618)
	answer := f.p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	f.call = <-f.b.held
	f.conv = f.b.last()
	want(t, "a question", f.call.ask(time.Hour, nil), nil)
	f.answer = <-answer
	f.stream, _, _ = strings.Cut(readEvents(t, f.answer).next(), "-")
	return f
}

// record returns the call's record and the name of its session in the store.
func (f *fenced) record() (name string, r store.Record) {
	f.t.Helper()
	page, err := f.store.List(f.t.Context(), "", 100)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range page.Records {
		list, err := f.store.Store.Load(f.t.Context(), page.Records[i].Session)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, r := range list {
			if r.Kind == store.Flow {
				return page.Records[i].Session, r
			}
		}
	}
	f.t.Fatal("no call is kept")
	return name, r
}

var homeIn = regexp.MustCompile(`"home":\d+`)

// takenOver has the neighbour take the call over.
func (f *fenced) takenOver() {
	f.t.Helper()
	name, r := f.record()
	line, rest, _ := bytes.Cut(r.Value, []byte("\n"))
	line = homeIn.ReplaceAll(line, fmt.Appendf(nil, `"home":%d`, neighbourID))
	f.put(name, &r, append(append(line, '\n'), rest...))
}

const theirs = `{"jsonrpc":"2.0","id":"call","result":{"by":"the neighbour"}}`

// ended has the neighbour, which has the call, end it.
func (f *fenced) ended() {
	f.t.Helper()
	name, r := f.record()
	f.put(name, &r, fmt.Appendf(nil, `{"v":2,"stream":%s,"over":true,"events":[{"seq":%d,"size":%d}]}`+"\n%s", f.stream, 1<<32+1, len(theirs), theirs))
}

func (f *fenced) put(name string, r *store.Record, value []byte) {
	f.t.Helper()
	err := f.store.Store.Commit(f.t.Context(), name, store.Change{Kind: r.Kind, ID: r.ID, Replaces: r.Version, TTL: time.Hour, Value: value})
	if err != nil {
		f.t.Fatal(err)
	}
}

// back comes back for what follows the question.
func (f *fenced) back() *http.Response { return f.p.get(f.stream + "-1") }

func (f *fenced) wantNothingMore() {
	f.t.Helper()
	if rest := text(f.t, f.answer); strings.Contains(rest, "result") {
		f.t.Errorf("its client is told %s", rest)
	}
}

// TestAHomeThatWasFencedSendsOnWhoComes: however it learns that another replica has the call, the stream is not over
// for that: 204 would be the end to an honest client.
func TestAHomeThatWasFencedSendsOnWhoComes(t *testing.T) {
	for name, learns := range map[string]func(f *fenced){
		"with its response": func(f *fenced) { f.call.finish(`{}`) },
		"with its end":      func(f *fenced) { f.call.Abandon() },
		"as it is cancelled": func(f *fenced) {
			f.call.Checkpointer().Drop()
			f.call.Abandon()
		},
		"as it makes sure": func(f *fenced) {
			if err := f.call.Checkpointer().Save(again()); !errors.Is(err, downstream.ErrGone) {
				f.t.Errorf("it learns %v", err)
			}
			f.call.Checkpointer().Leave()
		},
		"from a store that was away": func(f *fenced) {
			f.store.away.Store(true)
			time.AfterFunc(8*time.Second, func() { f.store.away.Store(false) })
			f.call.finish(`{}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFenced(t)
				f.takenOver()
				learns(f)
				f.wantNothingMore()
				want(t, "who comes back", f.back().StatusCode, http.StatusTeapot)
			})
		})
	}
}

// again makes sure of a call.
func again() downstream.Checkpoint {
	return downstream.Checkpoint{Request: `"call"`, N: 2, Record: []byte(`{}`), Open: []jsonrpc.ID{`"q"`}, TTL: time.Hour, Again: true}
}

// TestACallHasOneResponseThoughItsHomeWasCutOff: what another replica has told meanwhile counts, though its record is one
// of a call that has ended, as its own word would be.
func TestACallHasOneResponseThoughItsHomeWasCutOff(t *testing.T) {
	for name, away := range map[string]time.Duration{"within its patience": 8 * time.Second, "beyond it": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFenced(t)
				f.takenOver()
				f.ended()
				f.store.away.Store(true)
				time.AfterFunc(away, func() { f.store.away.Store(false) })
				f.call.finish(`{"by":"its home"}`)
				if away < time.Minute {
					f.wantNothingMore()
				}
				time.Sleep(2 * time.Minute)
				if got := text(t, f.back()); !strings.Contains(got, "the neighbour") || strings.Contains(got, "its home") {
					t.Errorf("who comes back is told %s", got)
				}
			})
		})
	}
}

// TestACallWhoseStoreHasLostAllIsAnswered: nobody else has it.
func TestACallWhoseStoreHasLostAllIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		name, _ := f.record()
		want(t, "losing all", f.store.End(t.Context(), name), nil)
		f.call.finish(`{"by":"its home"}`)
		if got := text(t, f.answer); strings.Count(got, "its home") != 1 {
			t.Errorf("its client is told %s", got)
		}
	})
}

// TestAWordThatWasKeptUnheardIsTold: the store took it, and could not say so.
func TestAWordThatWasKeptUnheardIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		f.store.unheard.Store(true)
		f.call.finish(`{"by":"its home"}`)
		if got := text(t, f.answer) + text(t, f.back()); strings.Count(got, "its home") != 2 {
			t.Errorf("its client is told %s", got)
		}
	})
}

// TestAWordIsKeptAfterAChangeThatWasMadeUnheard: the call would stay in the store, and be gone on with.
func TestAWordIsKeptAfterAChangeThatWasMadeUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		f.store.unheard.Store(true)
		k := again()
		k.Again = false
		time.AfterFunc(time.Nanosecond, func() { f.store.away.Store(true) }) // before it could ask
		if err := f.call.Checkpointer().Save(k); err == nil {
			t.Fatal("an answer was kept that nobody knows of")
		}
		time.AfterFunc(time.Second, func() { f.store.away.Store(false) })
		f.call.finish(`{"by":"its home"}`)
		if _, r := f.record(); !strings.Contains(string(r.Value), `"over":true`) {
			t.Errorf("the store has %s", r.Value)
		}
	})
}

// TestAHomeThatIsNotSureGoesOn: a store that cannot say whose the call is ends nothing.
func TestAHomeThatIsNotSureGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t)
		f.store.away.Store(true)
		if err := f.call.Checkpointer().Save(again()); err == nil || errors.Is(err, downstream.ErrGone) {
			t.Errorf("it learns %v", err)
		}
		f.store.away.Store(false)
		f.call.finish(`{"by":"its home"}`)
		if got := text(t, f.back()); !strings.Contains(got, "its home") {
			t.Errorf("its client is told %s", got)
		}
	})
}
