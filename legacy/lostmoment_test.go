package legacy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// A call that ended while the store was away has its answer here, to be fetched. Two are about to remove its record when the store is
// back, neither of which is to take the other for another replica.
func TestAnAnswerOfAnOutageIsThereToBeFetched(t *testing.T) {
	for _, tell := range []bool{false, true} {
		t.Run(fmt.Sprint("told ", tell), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				s := &shaky{Store: opt.Store, says: store.ErrUnreachable}
				tells := &tellTale{Store: s}
				opt.Store, opt.Retention, opt.Replica, opt.Peers = tells, time.Hour, homeID, dead{}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20251125)
				k := p.lost(b, false)
				question := fmt.Sprintf("%d-2", k.Address().Stream)
				want(t, "a question", k.ask(time.Hour, nil), nil)
				s.away.Store(true)
				k.finish(`"r"`)
				time.Sleep(30*time.Second + 100*time.Millisecond)
				s.away.Store(false)
				if tell {
					tells.changed("") // as store.Monitored does when the store is back
				}
				time.Sleep(time.Minute)
				want(t, "the answer", p.get(question).StatusCode, http.StatusOK)
			})
		})
	}
}

type pinged struct{ *shaky }

func (s *pinged) Ping(ctx context.Context) error {
	if s.away.Load() {
		return errAway
	}
	return s.Store.Ping(ctx)
}

// The store is back at any moment of the tries to have it take the end.
func TestAnAnswerOfAnOutageIsThereWheneverThatEnds(t *testing.T) {
	lost, all := 0, 0
	for off := time.Duration(0); off < time.Second; off += 7 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			opt, b := stored(), newFake()
			s := &shaky{Store: opt.Store}
			m := store.NewMonitored(&pinged{s}, func(bool, error) {})
			defer m.Close()
			told := &telling{Monitored: m}
			opt.Store, opt.Retention, opt.Replica, opt.Peers = told, time.Hour, homeID, dead{}
			_, p := servePipe(t, opt, b)
			p.initialize(mcp.V20251125)
			k := p.lost(b, false)
			question := fmt.Sprintf("%d-2", k.Address().Stream)
			want(t, "a question", k.ask(time.Hour, nil), nil)
			w := p.asked(b)
			keep := downstream.Checkpoint{Request: w.req.ID, N: 2, Record: []byte(`{"x":1}`), TTL: time.Hour, Again: true, Over: func() bool { return false }}
			b.last().renews = func() { keep.N++; _ = w.Checkpointer().Save(keep) }
			s.away.Store(true)
			told.changed("") // the connection is lost
			k.finish(`"r"`)
			time.Sleep(30*time.Second + off)
			s.away.Store(false)
			time.Sleep(time.Minute)
			all++
			if p.get(question).StatusCode != http.StatusOK {
				lost++
			}
		})
	}
	if lost > 0 {
		t.Errorf("%d of %d answers are lost", lost, all)
	}
}

type telling struct {
	*store.Monitored
	changed func(string)
}

func (m *telling) Watch(changed func(string)) bool {
	m.changed = changed
	return m.Monitored.Watch(changed)
}

// The store went back behind a change of B's; A, which never heard of that, changes the session, whose record has the number then that B
// knows from the lost moment.
func TestARecordOfTheSameNumberMayBeAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, ba := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := newRewinding(opt.Store)
		atA := &tellTale{Store: engine}
		opt.Store = atA
		_, a := servePipe(t, opt, ba)
		a.initialize(mcp.V20250618)
		bb := newFake()
		opt.Replica = neighbourID
		atB := &tellTale{Store: engine}
		opt.Store = atB
		_, b := servePipe(t, opt, bb)
		b.session, b.version = a.session, a.version
		want(t, "a request at B", b.status(plainEcho), 200)
		name := store.Name("/mcp\n" + a.session)
		engine.part()
		bb.last().setLevel("debug") // B's record: lost
		synctest.Wait()
		engine.goBack()
		atA.changed("")
		atB.changed("")
		ba.last().setLevel("error")
		synctest.Wait()
		atB.changed(name)
		time.Sleep(time.Minute)
		want(t, "a request at B", b.status(plainEcho), 200)
		time.Sleep(time.Minute)
		want(t, "a request at B", b.status(plainEcho), 200)
		want(t, "the level at B", bb.last().level, "error")
	})
}

// failingOnce is a store whose connection is lost as it is asked for a session.
type failingOnce struct {
	*rewinding
	changed func(string)
	now     atomic.Bool
}

func (f *failingOnce) Watch(changed func(string)) bool { f.changed = changed; return true }

func (f *failingOnce) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if at.Kind == store.Session && f.now.Swap(false) {
		f.goBack()
		f.changed("") // as the client does before it frees what waits on the connection
		return store.Record{}, context.DeadlineExceeded
	}
	return f.rewinding.Get(ctx, at)
}

func TestAConnectionLostDuringALookIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := &failingOnce{rewinding: newRewinding(opt.Store)}
		opt.Store = engine
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		at := store.Address{Session: store.Name("/mcp\n" + p.session), Kind: store.Session}
		before, _ := engine.Get(t.Context(), at)
		engine.part()
		b.last().setLevel("debug")
		synctest.Wait()
		engine.now.Store(true)
		engine.changed(at.Session)
		for range 3 {
			want(t, "a request", p.status(plainEcho), 200)
			time.Sleep(time.Minute)
		}
		if after, err := engine.Get(t.Context(), at); err != nil || after.Version <= before.Version {
			t.Errorf("it had %d, and has %d, %v: %q", before.Version, after.Version, err, after.Value)
		}
	})
}

// The first question of a call was kept in the moment that the store lost.
func TestACallThatAskedFirstInTheLostMomentGoesOn(t *testing.T) {
	for name, looks := range map[string]bool{"the call ends": false, "the replica looks": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica, opt.Peers = homeID, dead{}
				engine := newRewinding(opt.Store)
				opt.Store = alone{engine, true}
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
				k := <-b.held
				engine.part()
				want(t, "a question", k.ask(time.Hour, nil), nil)
				engine.goBack()
				if looks {
					keep := downstream.Checkpoint{Request: k.req.ID, N: 2, Record: []byte(`{"answered":true}`), TTL: time.Hour, Again: true}
					want(t, "a look", k.Checkpointer().Save(keep), nil)
				}
				k.finish(`{"ok":true}`)
				if got, _ := io.ReadAll((<-answer).Body); !strings.Contains(string(got), `"ok":true`) {
					t.Errorf("the client got %q", got)
				}
			})
		})
	}
}

// A session that nobody uses at the moment has a change in the lost moment.
func TestAnIdleSessionGoesToAStoreThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := newRewinding(opt.Store)
		tells := &tellTale{Store: engine}
		opt.Store = tells
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		at := store.Address{Session: store.Name("/mcp\n" + p.session), Kind: store.Session}
		before, _ := engine.Get(t.Context(), at)
		engine.part()
		b.last().setLevel("debug")
		synctest.Wait()
		engine.goBack()
		tells.changed("")
		time.Sleep(time.Minute)
		if after, err := engine.Get(t.Context(), at); err != nil || after.Version <= before.Version {
			t.Errorf("it had %d, and has %d, %v", before.Version, after.Version, err)
		}
	})
}

// As TestARecordOfTheSameNumberMayBeAnother, but B had written twice in the lost moment: what A has acknowledged since counts.
func TestWhatWasChangedSinceTheStoreWentBackStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, ba := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := newRewinding(opt.Store)
		atA := &tellTale{Store: engine}
		opt.Store = atA
		_, a := servePipe(t, opt, ba)
		a.initialize(mcp.V20250618)
		bb := newFake()
		opt.Replica = neighbourID
		atB := &tellTale{Store: engine}
		opt.Store = atB
		_, b := servePipe(t, opt, bb)
		b.session, b.version = a.session, a.version
		want(t, "a request at B", b.status(plainEcho), 200)
		at := store.Address{Session: store.Name("/mcp\n" + a.session), Kind: store.Session}
		engine.part()
		bb.last().setLevel("debug")
		bb.last().setLevel("info")
		synctest.Wait()
		engine.goBack()
		atA.changed("")
		atB.changed("")
		ba.last().setLevel("error") // acknowledged, and in the store
		synctest.Wait()
		atB.changed(at.Session)
		want(t, "a request at B", b.status(plainEcho), 200)
		time.Sleep(time.Minute)
		r, err := engine.Get(t.Context(), at)
		if want := "2025-06-18 error"; err != nil || !strings.Contains(string(r.Value), base64.StdEncoding.EncodeToString([]byte(want))) {
			t.Errorf("the store has %s, %v; level at B %q", r.Value, err, bb.last().level)
		}
	})
}

// However many changes the moment had.
func TestManyChangesInTheLostMomentGoBack(t *testing.T) {
	for _, levels := range [][]string{{"debug"}, strings.Split(strings.Repeat("debug info ", 10)+"error", " ")} {
		t.Run(fmt.Sprint(len(levels)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, b := stored(), newFake()
				opt.Replica, opt.Peers = homeID, dead{}
				engine := newRewinding(opt.Store)
				tells := &tellTale{Store: engine}
				opt.Store = tells
				_, p := servePipe(t, opt, b)
				p.initialize(mcp.V20250618)
				at := store.Address{Session: store.Name("/mcp\n" + p.session), Kind: store.Session}
				engine.part()
				last := ""
				for i, level := range levels {
					last = level
					if i < len(levels)-1 {
						last = fmt.Sprint(level, i)
					}
					b.last().setLevel(last)
					synctest.Wait()
				}
				r, _ := engine.Get(t.Context(), at)
				t.Log("version", r.Version)
				engine.goBack()
				tells.changed("")
				time.Sleep(time.Minute)
				want(t, "a request", p.status(plainEcho), 200)
				want(t, "the level", b.last().level, last)
				r, err := engine.Get(t.Context(), at)
				if w := "2025-06-18 " + last; err != nil || !strings.Contains(string(r.Value), base64.StdEncoding.EncodeToString([]byte(w))) {
					t.Errorf("the store has %s, %v", r.Value, err)
				}
			})
		})
	}
}

// The session comes to B in the moment that is lost, and A is dead.
func TestASessionThatCameInTheLostMomentGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, ba := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := newRewinding(opt.Store)
		atA := &tellTale{Store: engine}
		opt.Store = atA
		_, a := servePipe(t, opt, ba)
		a.initialize(mcp.V20250618)
		engine.part()
		ba.last().setLevel("debug")
		synctest.Wait()
		bb := newFake()
		opt.Replica = neighbourID
		atB := &tellTale{Store: engine}
		opt.Store = atB
		_, b := servePipe(t, opt, bb)
		b.session, b.version = a.session, a.version
		want(t, "a request at B", b.status(plainEcho), 200)
		want(t, "the level at B", bb.last().level, "debug")
		engine.goBack()
		atB.changed("")
		time.Sleep(time.Minute)
		want(t, "a request at B", b.status(plainEcho), 200)
		want(t, "the level at B", bb.last().level, "debug")
	})
}

// A level is set, and set back, and the store goes back to the middle.
func TestASettingThatWentThereAndBackIsNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt, b := stored(), newFake()
		opt.Replica, opt.Peers = homeID, dead{}
		engine := newRewinding(opt.Store)
		tells := &tellTale{Store: engine}
		opt.Store = tells
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		set := func(level string) { b.last().setLevel(level); synctest.Wait() }
		set("info")
		set("debug")
		engine.part()
		set("info")
		tells.changed("") // the connection is lost for a moment, and nothing of the store
		time.Sleep(time.Minute)
		want(t, "a request", p.status(plainEcho), 200)
		time.Sleep(time.Minute)
		engine.goBack()
		tells.changed("")
		time.Sleep(time.Minute)
		want(t, "a request", p.status(plainEcho), 200)
		want(t, "the level", b.last().level, "info")
	})
}

// A call was taken over and ended in the moment that the store has lost: there it waits where it was before, and whoever came for it
// would ask once more what was answered, and the tool run twice.
func TestACallThatWasTakenOverAndEndedInTheLostMomentIsOver(t *testing.T) {
	for name, retention := range map[string]time.Duration{"it can be fetched": time.Hour, "it is forgotten": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt, ba := stored(), newFake()
				opt.Replica, opt.Peers, opt.Retention = homeID, dead{}, retention
				engine := newRewinding(opt.Store)
				opt.Store = alone{engine, true}
				_, a := servePipe(t, opt, ba)
				a.initialize(mcp.V20251125)
				k := a.lost(ba, false)
				question := fmt.Sprintf("%d-2", k.Address().Stream)
				want(t, "a question", k.ask(time.Hour, nil), nil)
				bb := newFake()
				bb.resumes = func(_ downstream.Caller, _ []byte, out downstream.Reply) error {
					out.Finish(downstream.Result("1", []byte(`{"done":"once"}`)))
					return nil
				}
				opt.Replica = neighbourID
				atB := &tellTale{Store: engine}
				opt.Store = atB
				_, b := servePipe(t, opt, bb)
				b.session, b.version = a.session, a.version
				engine.part()
				got := text(t, b.get(question))
				if !strings.Contains(got, `"done":"once"`) {
					t.Fatalf("it is taken over: %q", got)
				}
				time.Sleep(time.Minute)
				engine.goBack()
				atB.changed("")
				time.Sleep(time.Second)
				synctest.Wait()
				list, err := engine.Load(t.Context(), store.Name("/mcp\n"+a.session))
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range list {
					over, told := strings.Contains(string(r.Value), `"over":true`), strings.Contains(string(r.Value), `"done":"once"`)
					if r.Kind == store.Flow && (!over || told != (retention == time.Hour)) {
						t.Errorf("the store has %s", r.Value)
					}
				}
			})
		})
	}
}
