package legacy

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

// dead is a neighbour that has died since.
type dead struct{ neighbour }

func (dead) Forward(http.ResponseWriter, *http.Request, []byte, downstream.ReplicaID) bool {
	return false
}

// comesBack has the home take over what it is yet to know that it had lost.
func (f *fenced) comesBack() (resumed *[]downstream.Reply) {
	resumed = new([]downstream.Reply)
	f.conv.renews = func() {
		if errors.Is(f.call.Checkpointer().Save(again()), downstream.ErrGone) {
			f.call.Checkpointer().Leave()
		}
	}
	f.conv.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
		*resumed = append(*resumed, out)
		return nil
	}
	return resumed
}

// TestACallThatComesBackToItsHomeIsThereOnce: what it was there before has yet to end, and neither has the record of what
// it is now.
func TestACallThatComesBackToItsHomeIsThereOnce(t *testing.T) {
	for name, comes := range map[string]func(f *fenced) int{
		"with an answer": func(f *fenced) int {
			f.conv.mu.Lock()
			f.conv.leaving = 1
			f.conv.mu.Unlock()
			return f.p.status(`{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}`)
		},
		"with a client that has heard of the other replica": func(f *fenced) int {
			return f.p.get(fmt.Sprintf("%s-%d", f.stream, 1<<32)).StatusCode
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fencedBy(t, dead{})
				resumed := f.comesBack()
				f.takenOver()
				if status := comes(f); status/100 != 2 || len(*resumed) != 1 {
					t.Fatalf("%d, gone on with %d times", status, len(*resumed))
				}
				f.call.finish(`{"by":"what it was"}`) // a call whose round ends just now
				f.wantNothingMore()
				(*resumed)[0].Finish(downstream.Result(`"call"`, []byte(`{"by":"what it is"}`)))
				if got := text(t, f.back()); !strings.Contains(got, "what it is") {
					t.Errorf("who comes back is told %s", got)
				}
			})
		})
	}
}

// TestWithoutALeaseAStreamIsLookedForInTheStore: another replica may have taken its call over at any time, and nothing tells.
func TestWithoutALeaseAStreamIsLookedForInTheStore(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(f *fenced)
		resumed   int
		told      string
	}{
		"nothing":                   {func(*fenced) {}, 0, "its home"},
		"it cannot be reached":      {func(f *fenced) { f.store.away.Store(true) }, 0, "its home"},
		"it was taken over":         {func(f *fenced) { f.takenOver() }, 1, "what it is"},
		"and the other one is done": {func(f *fenced) { f.takenOver(); f.ended() }, 0, "the neighbour"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fencedBy(t, nil)
				resumed := f.comesBack()
				tc.meanwhile(f)
				back := f.back()
				if len(*resumed) != tc.resumed {
					t.Fatalf("gone on with %d times", len(*resumed))
				}
				f.store.away.Store(false)
				if tc.resumed > 0 {
					(*resumed)[0].Finish(downstream.Result(`"call"`, []byte(`{"by":"what it is"}`)))
				}
				f.call.finish(`{"by":"its home"}`)
				if got := text(t, back); !strings.Contains(got, tc.told) {
					t.Errorf("who comes back is told %s", got)
				}
			})
		})
	}
}

// asleep is a neighbour that cannot be asked, and neither can the store, for a while.
type asleep struct {
	neighbour
	awake atomic.Bool
	away  *atomic.Bool
}

func (a *asleep) Forward(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool {
	if a.awake.Load() {
		return a.neighbour.Forward(w, r, body, to)
	}
	if to == neighbourID {
		a.away.Store(true)
		time.AfterFunc(5*time.Second, func() { a.awake.Store(true); a.away.Store(false) })
	}
	return false
}

func (a *asleep) Others() []downstream.ReplicaID {
	if !a.awake.Load() {
		return nil
	}
	return []downstream.ReplicaID{neighbourID}
}

// A takeover that had to wait, for the store or for memory, came when the home was long awake, and had looked which calls others have:
// its client waited there for good, for an answer that was here.
func TestWhoIsAwakeAgainKeepsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asleep{}
		s := &shaky{Store: stored().Store}
		a.away = &s.away
		f := fencedIn(t, s, a)
		resumed := f.comesBack()
		f.takenOver()
		f.conv.mu.Lock()
		f.conv.leaving = 1
		f.conv.mu.Unlock()
		want(t, "the answer", f.p.status(answerQ), http.StatusTeapot)
		want(t, "taken over", len(*resumed), 0)
		f.call.Checkpointer().Leave()
	})
}
