package legacy

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// lasts returns how long the records of a session last in a store: its own, and the last of its calls'.
func (p *peer) lasts(s store.Store) (own, calls time.Duration) {
	p.t.Helper()
	list, err := s.Load(context.Background(), store.Name("/mcp\n"+p.session))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range list {
		if list[i].Kind == store.Session {
			own = list[i].TTL
		} else {
			calls = max(calls, list[i].TTL)
		}
	}
	return own, calls
}

// outlasts wants the session to be in the store at least as long as its calls are.
func (p *peer) outlasts(what string, s store.Store) {
	p.t.Helper()
	if own, calls := p.lasts(s); own < calls || calls == 0 {
		p.t.Errorf("%s: the session lasts for %v, and its calls for %v", what, own, calls)
	}
}

const (
	shortIdle = 6 * time.Minute
	lastsIdle = shortIdle * 3 / 2
)

func shortStored() Options {
	opt := stored()
	opt.Replica, opt.IdleTimeout, opt.Peers = homeID, shortIdle, dead{}
	return opt
}

// mortal is the store of a process that dies: nothing more is written then.
type mortal struct {
	store.Store
	dead atomic.Bool
}

func (m *mortal) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if m.dead.Load() {
		return context.Canceled
	}
	return m.Store.Commit(ctx, session, changes...)
}

func (m *mortal) Touch(ctx context.Context, touches ...store.Touch) error {
	if m.dead.Load() {
		return context.Canceled
	}
	return m.Store.Touch(ctx, touches...)
}

func (m *mortal) End(ctx context.Context, session string) error {
	if m.dead.Load() {
		return context.Canceled
	}
	return m.Store.End(ctx, session)
}

// TestASessionLastsInTheStoreAsLongAsItsCalls_A33: whatever becomes of the process once a question is kept, and whatever
// else is written down of the session.
func TestASessionLastsInTheStoreAsLongAsItsCalls_A33(t *testing.T) {
	for name, shared := range map[string]bool{"replicas": true, "one process after the other": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := shortStored(), newFake()
				engine := opt.Store
				dies := &mortal{Store: alone{engine, shared}}
				opt.Store = dies
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				want(t, "a plain call", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				if own, _ := p.lasts(engine); own > lastsIdle {
					t.Errorf("without a call it lasts for %v", own)
				}
				p.asked(b)
				p.outlasts("once the question is kept", engine)
				b.last().setLevel("debug")
				b.last().push.Changed()
				p.outlasts("after a change", engine)
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				p.outlasts("after a while", engine)
				dies.dead.Store(true)
				time.Sleep(15 * time.Minute) // nobody is there
				opt.Store, opt.Replica = alone{engine, shared}, neighbourID
				_, q := servePipe(t, opt, newFake())
				q.session, q.version = p.session, p.version
				want(t, "a request to the next process", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
				time.Sleep(shortIdle / 2)
				synctest.Wait()
				q.outlasts("a while after that", engine)
			})
		})
	}
}

// TestAReplicaCutsNoSessionShortWhoseCallIsAtAnother_A33: the one that has the session in memory knows nothing of the call, and the
// one that had that has left it to the store.
func TestAReplicaCutsNoSessionShortWhoseCallIsAtAnother_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, here := shortStored(), newFake()
		engine := opt.Store
		opt.Store = alone{engine, true}
		_, p := servePipe(t, opt, here)
		p.initialize(mcp.V20250618)
		elsewhere, there := opt, newFake()
		gone := &mortal{Store: alone{engine, true}}
		elsewhere.Replica, elsewhere.Store = neighbourID, gone
		_, q := servePipe(t, elsewhere, there)
		q.session, q.version = p.session, p.version
		want(t, "a plain call at the other", q.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
		q.asked(there)
		gone.dead.Store(true) // the other does nothing for it from now on
		for range 10 {
			want(t, "a plain call", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		p.outlasts("while it is used here", engine)
		here.last().setLevel("debug")
		here.last().push.Changed()
		synctest.Wait()
		p.outlasts("after a change here", engine)
	})
}

// TestASessionLastsNoLongerEachTimeThatItComesBack: it once had a call, which is over, and rests between its requests.
func TestASessionLastsNoLongerEachTimeThatItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := shortStored(), newFake()
		opt.Retention = 20 * time.Second
		engine := opt.Store
		dies := &mortal{Store: engine}
		opt.Store = dies
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asksBeside(b, "call", "q", 10) // whose record lasts for an hour
		session := p.session
		dies.dead.Store(true)
		opt.Store, opt.Unload, opt.MaxUnloaded = engine, 10*time.Second, 100
		opt, b = next(opt, nil)
		due := time.Now().Add(57 * time.Minute)
		b.due = func([]byte) (time.Time, error) { return due, nil }
		b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			t.Log("resumed")
			out.Finish(downstream.Result(`"call"`, nil))
			own, calls := p.lasts(engine)
			t.Log(own, calls)
			return nil
		}
		_, p = servePipe(t, opt, b)
		p.session, p.version = session, string(mcp.V20250618)
		for range 100 {
			want(t, "a plain call", p.status(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), 200)
			b.last().rests.Store(true)
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if own, _ := p.lasts(engine); own > lastsIdle || own == 0 {
			t.Errorf("its record lasts for %v", own)
		}
		if len(b.convs) < 100 {
			t.Errorf("it came back %d times", len(b.convs))
		}
	})
}

// TestASessionThatCameBackEndsWhenItIsIdle, once its calls are over: what they needed of its record is over with them.
func TestASessionThatCameBackEndsWhenItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := shortStored(), newFake()
		opt.Retention = 20 * time.Second
		engine := opt.Store
		dies := &mortal{Store: engine}
		opt.Store = alone{dies, false}
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b) // whose record lasts for an hour
		session := p.session
		dies.dead.Store(true)
		opt.Store, opt.Unload, opt.MaxUnloaded = alone{engine, false}, 10*time.Second, 100
		opt, b = next(opt, nil)
		due := time.Now().Add(time.Minute)
		b.due = func([]byte) (time.Time, error) { return due, nil }
		b.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
			out.Finish(downstream.Result(`"call"`, nil))
			return nil
		}
		_, p = servePipe(t, opt, b)
		p.session, p.version = session, string(mcp.V20250618)
		echo := `{"jsonrpc":"2.0","id":1,"method":"echo"}`
		want(t, "while its call waits", p.status(echo), 200)
		time.Sleep(2 * time.Minute)
		want(t, "when that is over", p.status(echo), 200)
		b.last().rests.Store(true)
		time.Sleep(2 * lastsIdle)
		synctest.Wait()
		want(t, "when it has been idle for too long", p.status(echo), 404)
	})
}

// touchable is a mortal one in which sessions can be touched still.
type touchable struct{ *mortal }

func (m touchable) Touch(ctx context.Context, touches ...store.Touch) error {
	return m.Store.Touch(ctx, touches...)
}

// TestAProcessThatStopsHasItsSessionsLastAsLongAsTheirCalls: a replica that knows nothing of these has touched them last.
func TestAProcessThatStopsHasItsSessionsLastAsLongAsTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := shortStored(), newFake()
		leaves := &mortal{Store: opt.Store}
		opt.Store = touchable{leaves}
		h, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		p.asked(b)
		leaves.dead.Store(true)
		if err := opt.Store.Touch(t.Context(), store.Touch{Session: store.Name("/mcp\n" + p.session), TTL: lastsIdle}); err != nil {
			t.Fatal(err)
		}
		h.Close()
		if own, _ := p.lasts(opt.Store); own < time.Hour {
			t.Errorf("it lasts for %v", own)
		}
	})
}

// TestASessionWhoseCallsAreOverLastsNoLongerThanOthers: the next touch says so, or its end in the process that had it.
func TestASessionWhoseCallsAreOverLastsNoLongerThanOthers(t *testing.T) {
	echo := `{"jsonrpc":"2.0","id":1,"method":"echo"}`
	for name, c := range map[string]struct{ shared, used bool }{
		"alone, used": {false, true}, "alone, unused": {false, false}, "shared, used": {true, true}, "shared, unused": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := shortStored(), newFake()
				opt.Retention = time.Minute
				engine := opt.Store
				opt.Store = alone{engine, c.shared}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				k := p.asked(b)
				if !c.used { // nobody says anything from then on
					time.Sleep(2 * shortIdle)
				}
				k.finish(`{}`)
				time.Sleep(shortIdle / 4)
				if c.used {
					want(t, "a plain call", p.status(echo), 200)
					time.Sleep(shortIdle / 4)
					synctest.Wait()
					if own, _ := p.lasts(engine); own > lastsIdle || own == 0 {
						t.Errorf("it lasts for %v", own)
					}
				}
				time.Sleep(2 * lastsIdle)
				synctest.Wait()
				want(t, "when it has been idle for too long", p.status(echo), 404)
			})
		})
	}
}

// TestACallThatBeginsAsSessionsAreTouchedLastsAsWell: what is written of its session at that moment knows nothing of it yet.
func TestACallThatBeginsAsSessionsAreTouchedLastsAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := shortStored(), newFake()
		engine, first := opt.Store, true
		var p *peer
		opt.Store = &touched{Store: engine, meanwhile: func() {
			if first {
				first = false
				p.asked(b)
			}
		}}
		_, p = servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		time.Sleep(shortIdle / 4)
		synctest.Wait()
		want(t, "touched", first, false)
		p.outlasts("afterwards", engine)
	})
}

// TestQuestionsDoNotTouchASessionThatLastsLongEnough: which takes a round trip of its own, beside the question's.
func TestQuestionsDoNotTouchASessionThatLastsLongEnough(t *testing.T) {
	for idle, most := range map[time.Duration]int32{time.Hour: 0, shortIdle: 1} {
		synctest.Test(t, func(t *testing.T) {
			opt, b := shortStored(), newFake()
			c := &counting{Store: opt.Store}
			opt.Store, opt.IdleTimeout = c, idle
			_, p := servePipe(t, opt, b)
			p.initialize(mcp.V20250618)
			for range 10 {
				k := p.asked(b)
				p.outlasts("a question", opt.Store)
				k.finish(`{}`)
				time.Sleep(time.Second)
			}
			if c.touches.Load() > most {
				t.Errorf("sessions that may be idle for %v: 10 questions took %d touches", idle, c.touches.Load())
			}
		})
	}
}
