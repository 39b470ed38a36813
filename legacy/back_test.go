package legacy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
)

// TestACallComesBackThoughItIsMoreThanItsShare: it was in memory before, and nobody else needs that.
func TestACallComesBackThoughItIsMoreThanItsShare(t *testing.T) {
	for _, times := range []int64{4, 7, 14} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := stored()
				opt.Replica = homeID
				p := asksLarge(t, opt)
				memory := budget.New(times * flowSize)
				opt, b := next(opt, memory)
				_, q := servePipe(t, opt, b)
				q.goOn(b, p.session)
				q.bringsBack(memory, "an answer")
			})
		})
	}
}

// TestACallComesBackByTheClockThoughItIsMoreThanItsShare.
func TestACallComesBackByTheClockThoughItIsMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 3
		opt := stored()
		opt.Replica = homeID
		for range calls {
			asksLarge(t, opt)
		}
		opt, b := next(opt, budget.New(8*flowSize))
		began, back := time.Now(), make(chan time.Duration, 2*calls)
		b.due = func([]byte) (time.Time, error) { return began.Add(time.Minute), nil }
		b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			back <- time.Since(began)
			out.Finish(downstream.Result(`"call"`, []byte(`{}`)))
			return nil
		}
		_, _ = servePipe(t, opt, b)
		time.Sleep(2 * time.Minute)
		want(t, "calls that came back", len(back), calls)
		for range len(back) {
			if after := <-back; after > time.Minute+30*time.Second {
				t.Errorf("one came back after %v", after)
			}
		}
	})
}

// TestLargeCallsThatAreMoreThanTheirShareComeBackOneAtATime: each has its turn, and who wants little is served meanwhile.
func TestLargeCallsThatAreMoreThanTheirShareComeBackOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 4
		opt := stored()
		opt.Replica = homeID
		type word struct{ session, last string }
		var words []word
		for range calls {
			p, k := waitsLarge(t, opt)
			words = append(words, word{p.session, fmt.Sprintf("%d-2", k.Address().Stream)})
			k.finish(`"` + strings.Repeat("r", flowSize) + `"`)
		}
		r := &reading{Store: opt.Store}
		opt.Store = r
		memory := budget.New(8 * flowSize)
		opt, b := next(opt, memory)
		_, first := servePipe(t, opt, b)
		time.Sleep(time.Minute) // what was there at the start has been looked at
		r.mu.Lock()
		r.atOnce, r.takes = 0, 100*time.Millisecond
		r.mu.Unlock()
		var clients []chan int
		for _, w := range words {
			q := *first
			q.goOn(b, w.session)
			status := make(chan int, 1)
			clients = append(clients, status)
			go func() {
				resp := q.get(w.last)
				if said := text(t, resp); !strings.Contains(said, "rrr") {
					t.Error(said)
				}
				status <- resp.StatusCode
			}()
		}
		for range 10 {
			time.Sleep(10 * time.Millisecond)
			small := *first
			small.session = ""
			small.initialize(mcp.V20251125)
			want(t, "somebody else's request", small.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		}
		for i, status := range clients {
			want(t, fmt.Sprint("result ", i), <-status, 200)
		}
		if _, atOnce := r.said(); atOnce > 1 {
			t.Errorf("%d are read at once", atOnce)
		}
		if memory.Used() > 8*flowSize {
			t.Errorf("%d bytes of %d are charged", memory.Used(), memory.Limit())
		}
	})
}

// comesBackAlone has a mount of a process get a large result from the store, which is more than its share, for its client to fetch. read is
// what the mount reads then.
func comesBackAlone(t *testing.T, opt Options, memory *budget.Budget, read *reading) (p *peer, last string) {
	t.Helper()
	opt.Replica = homeID
	p, k := waitsLarge(t, opt)
	last = fmt.Sprintf("%d-2", k.Address().Stream)
	k.finish(`"` + strings.Repeat("r", flowSize) + `"`)
	read.Store = opt.Store
	opt.Store = read
	opt, b := next(opt, memory)
	_, q := servePipe(t, opt, b)
	time.Sleep(time.Minute) // what was there at the start has been looked at
	q.goOn(b, p.session)
	return q, last
}

// slow has reads take this long, and be counted anew.
func (r *reading) slow(takes time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atOnce, r.takes = 0, takes
}

// TestLargeCallsOfTwoMountsComeBackOneAtATime: the memory is that of the process.
func TestLargeCallsOfTwoMountsComeBackOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, memory, r := stored(), budget.New(8*flowSize), new(reading)
		said := make(chan string, 2)
		var fetch []func()
		for _, opt.StoreScope = range []string{"/one", "/two"} {
			p, last := comesBackAlone(t, opt, memory, r)
			fetch = append(fetch, func() { said <- text(t, p.get(last)) })
		}
		r.slow(100 * time.Millisecond)
		for _, one := range fetch {
			go one()
		}
		time.Sleep(50 * time.Millisecond)
		want(t, "newcomers are refused meanwhile", memory.Full(), false)
		for range fetch {
			if said := <-said; !strings.Contains(said, "rrr") {
				t.Error(said)
			}
		}
		if _, atOnce := r.said(); atOnce != 1 {
			t.Errorf("%d are read at once", atOnce)
		}
	})
}

// TestAMountWhoseStoreHangsDoesNotKeepLargeCallsOfOthersAway for longer than a turn lasts.
func TestAMountWhoseStoreHangsDoesNotKeepLargeCallsOfOthersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, hangs := budget.New(8*flowSize), new(reading)
		p, last := comesBackAlone(t, stored(), memory, hangs)
		q, other := comesBackAlone(t, stored(), memory, new(reading))
		hangs.slow(time.Hour)
		first := make(chan string)
		go func() { first <- text(t, p.get(last)) }()
		synctest.Wait()
		want(t, "at first", q.get(other).StatusCode, http.StatusServiceUnavailable)
		time.Sleep(15 * time.Second)
		if said := text(t, q.get(other)); !strings.Contains(said, "rrr") {
			t.Error(said)
		}
		<-first
	})
}

// TestNewcomersAreServedWhileALargeCallIsLookedAt: whoever looks for calls that nobody has is not refused for its memory.
func TestNewcomersAreServedWhileALargeCallIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		opt.Replica = homeID
		asksLarge(t, opt)
		r := &reading{Store: opt.Store, takes: time.Second}
		opt.Store = r
		opt, b := next(opt, budget.New(5*flowSize))
		_, q := servePipe(t, opt, b)
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			q.session = ""
			q.initialize(mcp.V20251125)
			want(t, "DELETE", q.delete().StatusCode, 204)
		}
		if reads, _ := r.said(); reads == 0 {
			t.Error("nobody has looked at it")
		}
	})
}

// TestNewcomersAreServedWhileLargeCallsOfTwoMountsAreLookedAt at the same time.
func TestNewcomersAreServedWhileLargeCallsOfTwoMountsAreLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, memory := stored(), budget.New(5*flowSize)
		opt.Replica = homeID
		scopes := []string{"/one", "/two"}
		for _, opt.StoreScope = range scopes {
			asksLarge(t, opt)
		}
		r := &reading{Store: opt.Store, takes: time.Second}
		opt.Store = r
		for _, opt.StoreScope = range scopes {
			opt, b := next(opt, memory)
			_, _ = servePipe(t, opt, b)
		}
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			want(t, "newcomers are refused", memory.Full(), false)
		}
		if reads, atOnce := r.said(); reads < len(scopes) || atOnce != 1 {
			t.Errorf("%d are looked at, %d at once", reads, atOnce)
		}
	})
}

// TestWhoTakesItsTimeIsChargedForWhatComesBackAlone: clients that poll, and read nothing. What stays is charged to them, not what it took
// to read it.
func TestWhoTakesItsTimeIsChargedForWhatComesBackAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, memory := stored(), budget.New(8*flowSize)
		all := []polled{asksAtLength(t, opt), asksAtLength(t, opt)}
		opt, b := next(opt, memory)
		opt.Replica, opt.Poll, opt.Unload, opt.MaxUnloaded = homeID, time.Second, time.Hour, 100
		h, q := servePipe(t, opt, b)
		for _, k := range all {
			q.goOn(b, k.session)
			synctest.Wait() // what comes back meanwhile is charged for itself
			before := memory.Used()
			q.pollsSlowly(k)
			synctest.Wait()
			if held := memory.Used() - before; held < 2*flowSize || held >= 3*flowSize {
				t.Errorf("what stays is charged %d bytes", held)
			}
			want(t, "beside that its session may not have as much again", budget.Short(q.live(h).Account().Take(5*flowSize/2)), true)
		}
		want(t, "newcomers are refused", memory.Full(), false)
	})
}
