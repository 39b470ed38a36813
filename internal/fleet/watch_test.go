package fleet

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// server is a modern one that can go away.
type server struct {
	gone  atomic.Bool
	guess atomic.Bool // nobody has signed in
}

func (s *server) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	if s.gone.Load() {
		return nil, &upstream.Failure{Cause: upstream.Unreachable, Detail: "cannot be reached"}
	}
	if s.guess.Load() {
		return &upstream.Answer{Result: []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"mcp-bridge/guessed":true}`)}, nil
	}
	return &upstream.Answer{Result: []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`)}, nil
}

func (s *server) Listen(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (*server) Close() error { return nil }

// watching is a fleet that looks after one server.
func watching(t *testing.T, s *server, log *strings.Builder) *Fleet {
	f, err := Open([]Spec{{Path: "/mcp", Log: zerolog.New(zerolog.SyncWriter(log)), Open: func() (*mount.Mount, error) {
		return mount.New(mount.Options{Caller: s})
	}}}, Options{SSE: func(string) (string, string) { return "/sse", "/messages" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	f.Watch()
	return f
}

// TestAServerIsReadyOnceSomebodyHasSignedIn, and not before, when nothing of it is known.
func TestAServerIsReadyOnceSomebodyHasSignedIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &server{}
		s.guess.Store(true)
		f, err := Open([]Spec{{Path: "/mcp", Log: zerolog.New(zerolog.SyncWriter(&log)), Open: func() (*mount.Mount, error) {
			return mount.New(mount.Options{Caller: s, Behalf: &signin.Behalf{}})
		}}}, Options{SSE: func(string) (string, string) { return "/sse", "/messages" }})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.Watch()
		time.Sleep(time.Hour)
		synctest.Wait()
		if text := log.String(); strings.Count(text, wantsSignIn) != 1 || strings.Contains(text, "the upstream is ready") {
			t.Errorf("before the sign-in the log says\n%s", text)
		}
		s.guess.Store(false)
		time.Sleep(lookAgainEvery)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "the upstream is ready") != 1 {
			t.Errorf("after the sign-in the log says\n%s", text)
		}
	})
}

func TestReadinessFollowsTheUpstreamAndTheLogTellsItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &server{}
		f := watching(t, s, &log)
		for _, step := range []struct {
			gone   bool
			after  time.Duration
			status int
		}{
			{false, time.Second, http.StatusOK}, {true, lookAgainEvery, http.StatusServiceUnavailable},
			{true, 5 * time.Minute, http.StatusServiceUnavailable}, {false, 2 * lookAgainEvery, http.StatusOK}, {false, time.Hour, http.StatusOK},
		} {
			s.gone.Store(step.gone)
			time.Sleep(step.after)
			synctest.Wait()
			if status, body := probe(f, "localhost", "/readyz"); status != step.status {
				t.Errorf("%+v: /readyz answers %d %s", step, status, body)
			}
		}
		for _, once := range []string{"the upstream is ready", "the upstream is lost", "the upstream is back"} {
			if strings.Count(log.String(), once) != 1 {
				t.Errorf("%q is not told once:\n%s", once, log.String())
			}
		}
	})
}

// An outage that is shorter than the time between two looks is told, too, if anybody was
// there to suffer from it.
func TestShortOutagesThatCallsMeetAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &server{}
		f := watching(t, s, &log)
		time.Sleep(time.Minute + time.Second) // just looked at
		s.gone.Store(true)
		for range 10 {
			for range 100 {
				_, _ = f.Members()[0].Upstream.Do(t.Context(), &upstream.Call{Method: "tools/call"}, nil)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if status, _ := probe(f, "localhost", "/readyz"); status != http.StatusServiceUnavailable {
			t.Errorf("/readyz answers %d", status)
		}
		s.gone.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if status, _ := probe(f, "localhost", "/readyz"); status != http.StatusOK {
			t.Errorf("afterwards /readyz answers %d", status)
		}
		for _, once := range []string{"the upstream is lost", "the upstream is back"} {
			if strings.Count(log.String(), once) != 1 {
				t.Errorf("%q is not told once:\n%s", once, log.String())
			}
		}
	})
}
