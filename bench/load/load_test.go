package load_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T) (*stub.Legacy, string) {
	t.Helper()
	l := stub.NewLegacy(50)
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	return l, srv.Listener.Addr().String()
}

func check(t *testing.T, errs *load.Errors) {
	t.Helper()
	if errs.Count() != 0 {
		t.Errorf("%d errors, first: %v", errs.Count(), errs.First())
	}
}

func TestClosedLoopOfEveryKind(t *testing.T) {
	_, addr := serve(t)
	for _, kind := range load.Kinds {
		marks := 0
		r := load.Closed{Addr: addr, Kind: kind, Clients: 4, Sessions: 3, Tools: 40, Warm: 10 * time.Millisecond, Window: 100 * time.Millisecond, Mark: func() { marks++ }}.Run(context.Background())
		check(t, &r.Errors)
		if r.Calls == 0 || marks != 2 || r.Quantile(0.5) <= 0 || r.Quantile(1) < r.Quantile(0) {
			t.Errorf("%s: %d calls, %d marks, p50 %s", kind, r.Calls, marks, r.Quantile(0.5))
		}
	}
}

func TestFixedRateCountsEveryCallThatFellDue(t *testing.T) {
	_, addr := serve(t)
	r := load.Rate{Addr: addr, PerSecond: 500, Conns: 8, Warm: 50 * time.Millisecond, Window: 200 * time.Millisecond}.Run(context.Background())
	check(t, &r.Errors)
	if r.Calls < 99 || r.Calls > 101 {
		t.Errorf("%d calls fell due in 200 ms at 500/s", r.Calls)
	}
}

func TestHeldCallsAreAllAnswered(t *testing.T) {
	_, addr := serve(t)
	held := false
	r := load.Hold{Addr: addr, N: 50, Workers: 4, Held: func() { held = true }}.Run()
	check(t, &r.Errors)
	if !held || r.Held != 50 || r.Done != 50 {
		t.Errorf("%+v", r)
	}
}

func TestListChangesReachEveryIdleStreamOnce(t *testing.T) {
	_, addr := serve(t)
	change := func() error {
		resp, err := http.Post("http://"+addr+stub.PathChanged, "", nil)
		if err == nil {
			err = resp.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
		return err
	}
	r := load.Idle{Addr: addr, N: 40, Workers: 4, Changes: 3, Change: change, Wait: 10 * time.Second}.Run()
	check(t, &r.Errors)
	if r.Streams != 40 || len(r.Last) != 3 || r.Lost != 0 || r.Duplicate != 0 {
		t.Errorf("%+v", r)
	}
}

// TestFailuresAreCounted: a server that fails now and then shows up as errors.
func TestFailuresAreCounted(t *testing.T) {
	l, _ := serve(t)
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n%10 == 9 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		l.ServeHTTP(w, r)
	}))
	defer srv.Close()
	r := load.Closed{Addr: srv.Listener.Addr().String(), Kind: load.Plain, Clients: 1, Window: 100 * time.Millisecond}.Run(context.Background())
	if r.Errors.Count() == 0 || r.Errors.First() == nil || r.Calls == 0 {
		t.Errorf("%d errors, %d calls", r.Errors.Count(), r.Calls)
	}
}
