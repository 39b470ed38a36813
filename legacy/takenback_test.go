package legacy

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/mcp"
)

// TestTheEndOfASessionIsThatOfItsCallsWhoseAnswersWereTakenBack_G13: they are in the store alone since a disk did not take an answer.
func TestTheEndOfASessionIsThatOfItsCallsWhoseAnswersWereTakenBack_G13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fencedIn(t, &shaky{Store: stored().Store, alone: true}, nil)
		f.store.away.Store(true)
		want(t, "an answer", f.answers(), downstream.ErrGone)
		f.store.away.Store(false)
		time.Sleep(5 * time.Second)
		want(t, "DELETE", f.p.do(f.p.request(http.MethodDelete, "")).StatusCode, http.StatusNoContent)
		synctest.Wait()
		want(t, "calls that the server is told of", len(f.conv.givenUp), 1)
	})
}

// onADisk is a call whose records are on a disk that fails when its store is away, as of one process. adapt changes options.
func onADisk(t *testing.T, due time.Duration, adapt func(*Options)) (s *shaky, b *fakeBackend, p *peer, k *call) {
	t.Helper()
	opt := stored()
	s, b = &shaky{Store: opt.Store, alone: true}, newFake()
	opt.Store, opt.Replica, opt.StoreWait = s, homeID, time.Hour
	if adapt != nil {
		adapt(&opt)
	}
	began := time.Now()
	b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
	_, p = servePipe(t, opt, b)
	p.initialize(mcp.V20250618)
	return s, b, p, p.asked(b)
}

var answered = downstream.Checkpoint{Request: `"call"`, N: 2, Record: []byte(answeredFlow), TTL: time.Hour}

// doesNotTake has the disk not take an answer of the call, which goes to the store alone.
func (s *shaky) doesNotTake(t *testing.T, k *call) {
	t.Helper()
	s.away.Store(true)
	want(t, "an answer", k.Checkpointer().Save(answered), downstream.ErrGone)
	k.Checkpointer().Leave()
	s.away.Store(false)
}

// TestACallWhoseAnswerWasTakenBackKeepsItsSession_A33: a disk did not take the answer, and its client waits before it tries again.
func TestACallWhoseAnswerWasTakenBackKeepsItsSession_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, p, k := onADisk(t, 50*time.Minute, func(opt *Options) { opt.IdleTimeout = 10 * time.Minute })
		b.last().resumes = func(downstream.Caller, []byte, downstream.Reply) error { return nil }
		s.doesNotTake(t, k)
		time.Sleep(5 * time.Second)
		b.last().rests.Store(true)
		time.Sleep(25 * time.Minute)
		want(t, "the answer again", p.status(answerQ), http.StatusAccepted)
	})
}

// TestACallWhoseAnswerWasTakenBackComesBackWhenItIsDue, also one that was once about to leave memory: what was noted then is over.
func TestACallWhoseAnswerWasTakenBackComesBackWhenItIsDue(t *testing.T) {
	for name, noted := range map[string]bool{"never about to leave": false, "once about to leave": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, b, _, k := onADisk(t, 40*time.Minute, func(opt *Options) {
					opt.Unload, opt.MaxUnloaded, opt.IdleTimeout = 30*time.Minute, 100, 24*time.Hour
				})
				back := 0
				b.last().resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
					back++
					out.Finish(downstream.Result(`"call"`, nil))
					return nil
				}
				if noted {
					k.Reply.(session.Waiting).Shelve(time.Now().Add(time.Minute))
				}
				time.Sleep(10 * time.Minute)
				s.doesNotTake(t, k)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				want(t, "times that it came back", back, 1)
			})
		})
	}
}

// TestWhatIsKeptAsideIsNoAnswer: where a disk does not take it the call stays.
func TestWhatIsKeptAsideIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, k := onADisk(t, time.Hour, nil)
		s.away.Store(true)
		aside := answered
		aside.Aside, aside.Open = true, []jsonrpc.ID{`"q"`}
		want(t, "it fails", k.Checkpointer().Save(aside), errAway)
		s.away.Store(false)
		k.Checkpointer().Leave()
	})
}
