package vouch

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/uses"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Servers is what a process knows of the servers that it stands before, by the scope of what it keeps
// of each. It outlasts the mounts, which take each other's place: what was learnt from a server before
// the settings changed is as true afterwards.
type Servers struct {
	store store.Store
	log   zerolog.Logger
	known uses.Of[string, *server]
}

// server is one of them, as long as there is a mount of it.
type server struct {
	*Credentials
	stop  context.CancelFunc
	wrote time.Time     // the record, the last time
	told  chan struct{} // closed when others are told no more
}

// NewServers returns Servers that tell the other processes with a store of what has been refused, and
// the process that comes after; nil: there are none.
func NewServers(kept store.Store, log zerolog.Logger) *Servers {
	return &Servers{store: kept, log: log}
}

// Open returns what is known of the server of a scope, and what a mount calls at its end. With that of
// the last one it is forgotten here.
func (s *Servers) Open(scope string) (c *Credentials, closed func()) {
	known, closed := s.known.Use(scope, func() *server { return s.begin(scope) }, (*server).close)
	return known.Credentials, closed
}

func (s *Servers) begin(scope string) *server {
	known := &server{Credentials: New(), told: make(chan struct{})}
	var ctx context.Context
	ctx, known.stop = context.WithCancel(context.Background())
	if s.store == nil {
		close(known.told)
		return known
	}
	known.record = &record{store: s.store, session: store.Name("refused\n" + scope)}
	go func() {
		defer close(known.told)
		known.tell(ctx, s.log)
	}()
	return known
}

func (s *server) close() {
	s.stop()
	<-s.told
}

// When a record is looked at and written: once in a while, and soon when there is news, of which a
// stranger can make as much as they like.
const (
	tellEvery  = time.Minute
	tellSoon   = time.Second
	tellAgain  = 5 * time.Second // after a failure
	tellTime   = 5 * time.Second // at most, for one look
	lastWords  = time.Second     // the same at the end
	tellTries  = 5               // while others write at the same time
	recordLife = 30 * 24 * time.Hour
)

// tell has this process and those that share its store know the same of a server, until ctx ends.
func (s *server) tell(ctx context.Context, log zerolog.Logger) {
	failed, fresh := false, true
	for {
		err := s.exchange(ctx, tellTime, fresh)
		if err != nil && !failed && ctx.Err() == nil {
			log.Warn().Err(err).Msg("what the server refuses cannot be shared by the store: a newer token takes a session over only where the server is seen to refuse forged ones")
		}
		failed, fresh = err != nil, fresh && err != nil
		wait := tellEvery
		if failed {
			wait = tellAgain
		}
		if !s.awaitNews(ctx, wait, failed) {
			break
		}
	}
	if failed && s.Guards() || len(s.news) > 0 {
		_ = s.exchange(context.WithoutCancel(ctx), lastWords, false) // others refuse for themselves
	}
}

// awaitNews waits for the next look, and reports false at the end.
func (s *server) awaitNews(ctx context.Context, wait time.Duration, failed bool) bool {
	pause, again := time.NewTimer(time.Until(s.wrote.Add(tellSoon))), time.NewTimer(wait)
	defer pause.Stop()
	defer again.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
	}
	heard := s.news
	if failed {
		heard = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-heard:
	case <-again.C:
	}
	return true
}

// exchange learns what others have had refused, and tells them of what they do not know. Each process
// writes once, so that a record is sealed with a key that is not about to go; one that no key opens
// any more is begun anew.
func (s *server) exchange(ctx context.Context, limit time.Duration, fresh bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tries := 1; ; tries++ {
		kept, at, err := s.record.read(ctx)
		foreign := errors.Is(err, store.ErrForeign)
		if err != nil && !foreign {
			return err
		}
		s.hear(kept)
		if news := kept.merge(s.tells()); !news && !foreign && (!kept.Any || !fresh && at.TTL > recordLife/2) {
			return nil
		}
		s.wrote = time.Now()
		err = s.record.write(ctx, kept, at.Version)
		if _, conflict := errors.AsType[*store.ConflictError](err); !conflict || tries == tellTries {
			return err
		}
	}
}
