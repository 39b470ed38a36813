package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Calls that are due, and what keeps them from coming back: each comes back, or ends with a word.

// wantEnds checks that so many calls came back, or ended with a word.
func wantEnds(t *testing.T, calls int, back *atomic.Int64, log *strings.Builder) {
	t.Helper()
	synctest.Wait()
	words := strings.Count(log.String(), "a call could not be brought back in time")
	if got := int(back.Load()) + words; got != calls {
		t.Errorf("of %d calls %d came back, and %d ended with a word\n%.2000s", calls, back.Load(), words, log.String())
	}
}

// comesBack counts the calls that come back, which end at once.
func (b *fakeBackend) comesBack() (back *atomic.Int64) {
	back = new(atomic.Int64)
	b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
		back.Add(1)
		out.Finish(downstream.Result(`"call"`, nil))
		return nil
	}
	return back
}

// warns has the endpoint's warnings written down.
func (o *Options) warns() *strings.Builder {
	log := new(strings.Builder)
	o.Logger = zerolog.New(zerolog.SyncWriter(log)).Level(zerolog.WarnLevel)
	return log
}

// TestMoreLargeCallsThanThereAreTurnsForEndSomehow, in a slow store: they are given up some at a time, by what is left of their records.
func TestMoreLargeCallsThanThereAreTurnsForEndSomehow(t *testing.T) {
	for _, large := range []int{60, 200} {
		t.Run(fmt.Sprint(large), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const due = time.Hour - 3*time.Minute // by as much its record outlives its deadline
				opt, b := stored(), newFake()
				opt.Replica = homeID
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20251125)
				began := time.Now()
				for i := range large {
					p.asksBeside(b, fmt.Sprint("c", i), fmt.Sprint("q", i), flowSize)
				}
				after := &slow{Store: opt.Store}
				opt.Store = after
				opt, b = next(opt, budget.New(1<<30))
				b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
				back := b.comesBack()
				log := opt.warns()
				_, _ = servePipe(t, opt, b)
				time.Sleep(due - time.Minute) // in which it is noted when they are due
				after.takes.Store(int64(3 * time.Second))
				time.Sleep(20 * time.Minute)
				wantEnds(t, large, back, log)
			})
		})
	}
}

// TestACallThatIsFoundLateEndsWithAWordToo: a process starts after its deadline, and has no memory for it.
func TestACallThatIsFoundLateEndsWithAWordToo(t *testing.T) {
	for _, late := range []time.Duration{0, 45 * time.Second, 90 * time.Second, 110 * time.Second} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const due = time.Hour - 3*time.Minute // by as much its record outlives its deadline
				opt := stored()
				opt.Replica = homeID
				asksLarge(t, opt)
				began := time.Now()
				opt, b := next(opt, nil)
				b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
				time.Sleep(due + late)
				log := opt.warns()
				opt.Memory = budget.New(20 * flowSize)
				opt.Memory.Own().Charge(18 * flowSize)
				_, _ = servePipe(t, opt, b)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if strings.Count(log.String(), "a call could not be brought back in time") != 1 {
					t.Errorf("the log says\n%s", log.String())
				}
			})
		})
	}
}

// notNoting is a store that fails once to note when a call is due.
type notNoting struct {
	store.Store
	fails atomic.Bool
}

func (s *notNoting) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if changes[0].Kind == store.Due && !changes[0].Delete && s.fails.Swap(false) {
		return store.ErrUnreachable
	}
	return s.Store.Commit(ctx, session, changes...)
}

// TestANoteThatCannotBeMadeAnewStays where it is.
func TestANoteThatCannotBeMadeAnewStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const due = time.Hour - 3*time.Minute
		opt := stored()
		opt.Replica = homeID
		asksLarge(t, opt)
		began := time.Now()
		opt, b := next(opt, nil)
		b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
		back := b.comesBack()
		log := opt.warns()
		opt.Memory = budget.New(20 * flowSize)
		opt.Memory.Own().Charge(18 * flowSize)
		flaky := &notNoting{Store: opt.Store}
		opt.Store = flaky
		_, _ = servePipe(t, opt, b)
		time.Sleep(due - time.Minute)
		flaky.fails.Store(true) // the next note that is made
		time.Sleep(time.Minute + 15*time.Second)
		opt.Memory.Own().Give(18 * flowSize)
		time.Sleep(10 * time.Minute)
		want(t, "it has failed", !flaky.fails.Load(), true)
		wantEnds(t, 1, back, log)
	})
}

// TestWhatIsDueEachSecondIsNotPassedOverInASlowStore, which takes longer than that for each call.
func TestWhatIsDueEachSecondIsNotPassedOverInASlowStore(t *testing.T) {
	for _, takes := range []time.Duration{500 * time.Millisecond, 3 * time.Second} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const calls, due = 180, 30 * time.Minute
				opt, b := stored(), newFake()
				opt.Replica = homeID
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20251125)
				for i := range calls {
					p.asksBeside(b, fmt.Sprint("c", i), fmt.Sprint("q", i), i) // its size tells when it is due
				}
				began := time.Now()
				after := &slow{Store: opt.Store}
				opt.Store = after
				opt, b = next(opt, budget.New(1<<30))
				b.due = func(flow []byte) (time.Time, error) {
					var x struct{ X string }
					_ = json.Unmarshal(flow, &x)
					return began.Add(due + time.Duration(len(x.X))*time.Second), nil
				}
				back := b.comesBack()
				log := opt.warns()
				_, _ = servePipe(t, opt, b)
				time.Sleep(due - time.Minute) // in which it is noted when they are due
				after.takes.Store(int64(takes))
				time.Sleep(25 * time.Minute)
				wantEnds(t, calls, back, log)
			})
		})
	}
}

// TestWhatIsDueEachSecondIsNotPassedOverBeforeASlowServer, which takes longer than that for each session.
func TestWhatIsDueEachSecondIsNotPassedOverBeforeASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, due = 180, 10 * time.Minute
		opt, b := stored(), newFake()
		opt.Replica = homeID
		_, p := servePipe(t, opt, b)
		for range calls {
			p.session = ""
			p.initialize(mcp.V20251125)
			p.asksBeside(b, "call", "q", 10)
		}
		began := time.Now()
		opt, b = next(opt, budget.New(1<<30))
		var n atomic.Int64
		b.due = func(flow []byte) (time.Time, error) { // one each second, whichever
			return began.Add(due + time.Duration(n.Add(1)%calls)*time.Second), nil
		}
		b.restore = func([]byte) error { time.Sleep(3 * time.Second); return nil }
		back := b.comesBack()
		log := opt.warns()
		_, _ = servePipe(t, opt, b)
		time.Sleep(40 * time.Minute)
		wantEnds(t, calls, back, log)
	})
}

// keptDue keeps a large call for an hour in a process that dies, and returns what the next one has, and the event its client has heard.
func keptDue(t *testing.T) (opt Options, b *fakeBackend, p *peer, last string) {
	t.Helper()
	opt, b = stored(), newFake()
	home := &mortal{Store: opt.Store}
	after := opt.Store
	opt.Replica, opt.IdleTimeout, opt.Store = homeID, 10*time.Minute, home
	_, p = servePipe(t, opt, b)
	p.initialize(mcp.V20251125)
	last = p.asksBeside(b, "call", "q", flowSize)
	home.dead.Store(true)
	opt.Store = after
	opt, b = next(opt, nil)
	return opt, b, p, last
}

// TestACallWhosePauseEndedLongAgoComesBack: its process was gone meanwhile, and no other unloads anything.
func TestACallWhosePauseEndedLongAgoComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b, _, _ := keptDue(t)
		began := time.Now()
		b.due = func([]byte) (time.Time, error) { return began.Add(time.Second), nil }
		back, log := b.comesBack(), opt.warns()
		time.Sleep(30 * time.Minute)
		_, _ = servePipe(t, opt, b)
		time.Sleep(time.Minute)
		want(t, "calls that came back", back.Load(), 1)
		wantEnds(t, 1, back, log)
	})
}

// TestOneServerThatHangsKeepsNoOtherCallsFromEnding: a session does not come back for an hour, and others are due meanwhile.
func TestOneServerThatHangsKeepsNoOtherCallsFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const due = 10 * time.Minute
		opt, b := stored(), newFake()
		opt.Replica = homeID
		_, p := servePipe(t, opt, b)
		for i := range 2 {
			p.session = ""
			p.initialize(mcp.V20251125)
			p.asksBeside(b, "call", "q", i)
		}
		opt, b = next(opt, nil)
		began := time.Now()
		b.due = func(flow []byte) (time.Time, error) {
			if strings.Contains(string(flow), "x\":\"x") {
				return began.Add(due + 5*time.Second), nil
			}
			return began.Add(due), nil
		}
		var first atomic.Bool
		b.restore = func([]byte) error {
			if !first.Swap(true) {
				time.Sleep(time.Hour)
				return errors.New("its server is away")
			}
			return nil
		}
		back := b.comesBack()
		_, _ = servePipe(t, opt, b)
		time.Sleep(due + time.Minute)
		want(t, "calls that came back", back.Load(), 1)
		time.Sleep(2 * time.Hour)
	})
}

// TestASessionLastsAsLongAsTheWordOfItsCall, which its client is to fetch: be it longer than sessions last without use.
func TestASessionLastsAsLongAsTheWordOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const due = time.Hour - 3*time.Minute
		opt, b, p, last := keptDue(t)
		opt.Retention = 2 * time.Hour
		began := time.Now()
		b.due = func([]byte) (time.Time, error) { return began.Add(due), nil }
		var back atomic.Bool
		b.restore = func([]byte) error {
			if back.Load() {
				return nil
			}
			return errors.New("its server is away")
		}
		log := opt.warns()
		_, q := servePipe(t, opt, b)
		time.Sleep(due + 3*time.Minute)
		wantEnds(t, 1, new(atomic.Int64), log)
		time.Sleep(90 * time.Minute)
		back.Store(true)
		q.session, q.version = p.session, string(mcp.V20251125)
		resp := q.get(last)
		if said := text(t, resp); resp.StatusCode != 200 || !strings.Contains(said, `"reason":"timeout"`) {
			t.Errorf("its client gets %d\n%s", resp.StatusCode, said)
		}
	})
}

// TestACallThatIsDueLaterByNowIsNotedForThen, where nobody knows whether the replica lives that has gone on with it.
func TestACallThatIsDueLaterByNowIsNotedForThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b, _, _ := keptDue(t)
		opt.Store, opt.Peers = alone{opt.Store, true}, nil
		began, due := time.Now(), atomic.Int64{}
		due.Store(int64(5 * time.Minute))
		b.due = func([]byte) (time.Time, error) { return began.Add(time.Duration(due.Load())), nil }
		back := b.comesBack()
		_, _ = servePipe(t, opt, b)
		time.Sleep(time.Minute)
		due.Store(int64(20 * time.Minute))
		time.Sleep(19 * time.Minute)
		want(t, "calls that came back before", back.Load(), 0)
		time.Sleep(time.Minute)
		want(t, "calls that came back then", back.Load(), 1)
	})
}
