package subscriptions

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an upstream whose listens a test holds in its hand.
type server struct {
	upstream.Caller
	mu    sync.Mutex
	err   error // ends listens at once
	open  int
	asked []time.Time
	with  []string // the credentials of each
	end   chan error
	takes string // the only credentials that are taken; empty: any are
	// acknowledge may change the answer to a listen's filter; nil: all is accepted.
	acknowledge func(ctx context.Context, n int)
	heard       []func(jsonrpc.Message)
	ends        []chan error // of each listen
}

func (s *server) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	s.with = append(s.with, call.Authorization)
	n, err, acknowledge := len(s.asked), s.err, s.acknowledge
	if s.takes != "" && call.Authorization != s.takes {
		err = &upstream.Failure{Cause: upstream.Unauthorized}
	}
	s.heard = append(s.heard, notify)
	over := make(chan error, 1)
	s.ends = append(s.ends, over)
	if err == nil {
		s.open++
		defer func() { s.mu.Lock(); s.open--; s.mu.Unlock() }()
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if acknowledge != nil {
		acknowledge(ctx, n)
	}
	filter := rawjson.Get(call.Params, "notifications")
	notify(jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":` + string(filter) + `}`)})
	select {
	case err := <-s.end:
		return err
	case err := <-over:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *server) listens() (open, asked int) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, len(s.asked)
}

// ear is a session: it records what it hears.
type ear struct {
	mu    sync.Mutex
	heard []string
}

func (e *ear) Announce(key, _ string, _ []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, key)
}

func (e *ear) ElicitationOver(id string) { e.Announce(id, "", nil) }

func (e *ear) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := strings.Join(e.heard, " ")
	e.heard = nil
	return all
}

// line is a log that a test reads.
type line struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *line) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// hubOf returns a hub of a server with room for so many listens, and its log.
func hubOf(t *testing.T, s *server, listens int) (*Hub, *line) {
	out := &line{}
	s.end = make(chan error, 8)
	h := NewHub(Options{
		Upstream: s, Listens: listens, Log: zerolog.New(out),
		Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil),
	})
	t.Cleanup(h.Close)
	return h, out
}

func as(principal string) Identity {
	return Identity{Principal: principal, Version: string(mcp.V20260728)}
}

var tools = catalog.Lists{Tools: true}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
