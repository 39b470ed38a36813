package gate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGateLetsThoseInsideFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		for n := range 2 {
			if !g.Enter() || g.Count() != n+1 || g.IsShut() {
				t.Fatal("the gate is not open")
			}
		}
		if !g.Shut() || g.Shut() || !g.IsShut() {
			t.Error("shut once")
		}
		<-g.Shutting()
		if g.Enter() || g.Count() != 2 {
			t.Error("somebody got in")
		}
		if g.Admit(false) || !g.Admit(true) {
			t.Error("who comes about those inside gets in, and nobody else")
		}
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if err := g.Wait(t.Context()); err != nil || g.Count() != 0 {
					t.Errorf("%v with %d inside", err, g.Count())
				}
			})
		}
		for range 3 {
			synctest.Wait()
			g.Exit()
		}
		waiting.Wait()
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	g := New()
	g.Enter()
	g.Shut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	g.Exit()
	if err := g.Wait(ctx); err != nil {
		t.Error(err)
	}
}

func TestNobodyIsInsideAfterWait(t *testing.T) {
	for range 200 {
		g := New()
		var racing sync.WaitGroup
		for range 4 {
			racing.Go(func() {
				if g.Enter() {
					g.Exit()
				}
			})
		}
		g.Shut()
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		racing.Wait()
		if g.Count() != 0 {
			t.Fatalf("%d inside", g.Count())
		}
	}
}

func TestWorkIsWaitedForAndBeginsNoMoreOnceTheGateIsShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, over := New(), make(chan struct{})
		if !g.Go(func() { <-over }) {
			t.Fatal("nothing runs")
		}
		g.Shut()
		if g.Go(func() { t.Error("it runs") }) {
			t.Error("begun behind a gate that is shut")
		}
		go func() {
			synctest.Wait()
			close(over)
		}()
		if err := g.Wait(t.Context()); err != nil || g.Count() != 0 {
			t.Errorf("%v with %d inside", err, g.Count())
		}
	})
}
