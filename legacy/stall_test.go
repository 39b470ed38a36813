package legacy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions/store"
)

// stalling is a store that one process has, on a disk that does nothing for a while: what
// was begun is done when the disk goes on.
type stalling struct {
	store.Store
	goesOn atomic.Pointer[chan struct{}] // nil: it works
	err    error                         // what it says at once instead of stalling, nil: it stalls
	mu     sync.Mutex
	begun  []func() // what was begun, and nobody waits for any more
}

func (s *stalling) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if c := s.goesOn.Load(); c != nil {
		if s.err != nil {
			return s.err
		}
		select {
		case <-*c:
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			s.begun = append(s.begun, func() { _ = s.Store.Commit(context.Background(), session, changes...) })
			return ctx.Err()
		}
	}
	return s.Store.Commit(ctx, session, changes...)
}

// stall has the disk do nothing from now on, until the function that it returns is called.
func (s *stalling) stall() (goOn func()) {
	c := make(chan struct{})
	s.goesOn.Store(&c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, do := range s.begun {
			do()
		}
		s.goesOn.Store(nil)
		close(c)
	}
}

// heldOnADisk begins a call whose records are on a disk that can stall.
func heldOnADisk(t *testing.T) (*stalling, *call, <-chan *http.Response) {
	t.Helper()
	opt := stored()
	s := &stalling{Store: opt.Store}
	opt.Store = s
	b := newFake()
	_, p := servePipe(t, opt, b)
	p.initialize(mcp.V20250618)
	answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
	return s, <-b.held, answer
}

func (c *call) ask(ttl time.Duration, over func() bool) error {
	question := downstream.Question(`"q"`, "elicitation/create", []byte(`{}`))
	return c.Checkpointer().Save(downstream.Checkpoint{
		Request: c.req.ID, N: 1, Record: []byte(`{}`), Open: []jsonrpc.ID{`"q"`}, Message: &question, TTL: ttl, Over: over,
	})
}

// TestQuestionsWaitForADiskThatStalls: nobody was told anything yet, so there is nothing that a
// short wait is better for, and as long as its call may wait the question may.
func TestQuestionsWaitForADiskThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, answer := heldOnADisk(t)
		goOn := s.stall()
		time.AfterFunc(3*time.Minute, goOn)
		want(t, "a question while the disk stalls for three minutes", c.ask(time.Hour, nil), nil)
		c.finish(`{}`)
		<-answer
	})
	synctest.Test(t, func(t *testing.T) {
		s, c, answer := heldOnADisk(t)
		goOn := s.stall()
		began := time.Now()
		if err := c.ask(time.Minute, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a question whose call may wait a minute: %v", err)
		}
		if waited := time.Since(began); waited < time.Minute || waited > 2*time.Minute {
			t.Errorf("it waited for %v", waited)
		}
		goOn()
		c.finish(`{}`)
		<-answer
	})
}

// TestQuestionsThatADiskRefusesDoNotWait: it is full, and says so.
func TestQuestionsThatADiskRefusesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, answer := heldOnADisk(t)
		s.err = errors.New("no space left on device")
		goOn := s.stall()
		began := time.Now()
		if err := c.ask(time.Hour, nil); !errors.Is(err, s.err) {
			t.Errorf("a question gets %v", err)
		}
		want(t, "it waited for", time.Since(began), time.Duration(0))
		goOn()
		c.finish(`{}`)
		<-answer
	})
}

// TestQuestionsOfCallsThatEndWaitNoLonger: neither for a disk nor for a store that is away; and what may
// have been kept of them does not come back.
func TestQuestionsOfCallsThatEndWaitNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, answer := heldOnADisk(t)
		goOn := s.stall()
		var over atomic.Bool
		time.AfterFunc(time.Minute, func() { over.Store(true) })
		began := time.Now()
		want(t, "its question", c.ask(time.Hour, over.Load), downstream.ErrGone)
		if waited := time.Since(began); waited > 90*time.Second {
			t.Errorf("it waited for %v", waited)
		}
		goOn()
		c.Abandon()
		<-answer
		page, err := s.List(t.Context(), "", 100)
		if err != nil || len(page.Records) != 1 || page.Records[0].Kind != store.Session {
			t.Errorf("the store has %v, %v", page.Records, err)
		}
	})
}

// TestASessionOpenedWhileADiskStallsGoesOn: its record comes there late, and is no other replica's.
func TestASessionOpenedWhileADiskStallsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		s := &stalling{Store: opt.Store}
		opt.Store = s
		b := newFake()
		b.alone = true
		_, p := servePipe(t, opt, b)
		goOn := s.stall()
		p.initialize(mcp.V20250618)
		b.last().push.Changed() // which is late, too
		goOn()
		want(t, "records that came late", len(s.begun), 2)
		b.last().setLevel("error")
		want(t, "why the session ended", b.last().cause(), nil)
		list, err := s.List(t.Context(), "", 10)
		if err != nil || len(list.Records) != 1 || list.Records[0].Version != 2 {
			t.Errorf("the store has %+v, %v", list.Records, err)
		}
	})
}
