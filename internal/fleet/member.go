package fleet

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/upstream"
)

// Member is one mount at work, and what is known of its upstream.
type Member struct {
	*mount.Mount
	spec  Spec
	state health
	left  time.Time // when another one took its place; written before it is retired

	watching  context.Context
	stopWatch context.CancelFunc
	watched   chan struct{} // closed when nobody watches any more; nil: nobody began
}

// NewMember makes a mount. Nothing is sent before the first request or Watch.
func NewMember(spec Spec) (*Member, error) {
	at, err := spec.Open()
	if err != nil {
		return nil, err
	}
	m := &Member{Mount: at, spec: spec}
	m.watching, m.stopWatch = context.WithCancel(context.Background())
	return m, nil
}

// Path is that of the mount's endpoint.
func (m *Member) Path() string { return m.spec.Path }

// Target names the mount's server.
func (m *Member) Target() string { return m.spec.Target }

// Ready reports whether the upstream is one that clients can be served from.
func (m *Member) Ready() bool { return m.state.ready.Load() }

// Said is what the upstream is, or why clients cannot be served from it, for people.
func (m *Member) Said() string {
	if said := m.state.said.Load(); said != nil {
		return *said
	}
	return "not asked yet"
}

// Watch follows the upstream's health in the background until the mount ends. It
// may be called once.
func (m *Member) Watch() {
	m.watched = make(chan struct{})
	go func() { defer close(m.watched); m.observe(m.watching) }()
}

// stopWatching returns when nobody watches the upstream any more.
func (m *Member) stopWatching() {
	m.stopWatch()
	if m.watched != nil {
		<-m.watched
	}
}

// Close ends the mount at once.
func (m *Member) Close() {
	m.stopWatching()
	m.Mount.Close()
}

// Shutdown ends the mount; running calls may finish until ctx ends.
func (m *Member) Shutdown(ctx context.Context) error {
	m.stopWatching()
	return m.Mount.Shutdown(ctx)
}

// Retire ends a mount that others have taken the place of; running calls may finish until ctx ends.
func (m *Member) Retire(ctx context.Context) error {
	m.stopWatching()
	return m.Mount.Retire(ctx)
}

// lookAgainEvery is how often an upstream that could be used is looked at, and lookSoonest
// how soon after that when a call finds it away.
const (
	lookAgainEvery = 15 * time.Second
	lookSoonest    = 3 * time.Second
)

// observe probes the upstream until it has proven to be one that the bridge can
// use, and then looks whether it is still there, until ctx ends. Nothing waits for
// it: the upstream may come later, and sessions probe for themselves.
func (m *Member) observe(ctx context.Context) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = time.Second, 30*time.Second
	last := ""
	for !m.examine(ctx, &last) {
		if !pause(ctx, wait.NextBackOff()) {
			return
		}
	}
	for m.nextLook(ctx) {
		if last == wantsSignIn {
			m.examine(ctx, &last)
		}
		if err := m.Reach(ctx); err != nil && !m.await(ctx, err) {
			return
		}
	}
}

// await says that the upstream is lost, and waits until it is back. It reports
// false when ctx ended before.
func (m *Member) await(ctx context.Context, lost error) bool {
	if ctx.Err() != nil {
		return false
	}
	began := time.Now()
	m.state.ready.Store(false)
	m.spec.Log.Warn().Err(lost).Msg("the upstream is lost (the bridge keeps trying)")
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = time.Second, lookAgainEvery
	for m.Reach(ctx) != nil {
		if !pause(ctx, wait.NextBackOff()) {
			return false
		}
	}
	m.state.ready.Store(true)
	m.spec.Log.Info().Dur("after", time.Since(began).Round(time.Millisecond)).Msg("the upstream is back")
	return true
}

// nextLook waits until it is time to look at the upstream again: outages that calls suffer
// from are to be seen, however short. It reports false when ctx ended.
func (m *Member) nextLook(ctx context.Context) bool {
	if !pause(ctx, lookSoonest) {
		return false
	}
	t := time.NewTimer(lookAgainEvery - lookSoonest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-m.Away():
	case <-ctx.Done():
		return false
	}
	return true
}

// pause waits, and reports false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// wantsSignIn is all that is known of an upstream that answers nobody before a sign-in.
const wantsSignIn = "the upstream is there and wants the bridge to sign in; what it is and offers is known afterwards"

// examine probes once, logs what is new and reports whether to stop.
func (m *Member) examine(ctx context.Context, last *string) bool {
	verdict := m.Judge(ctx)
	refused := upstream.Refused(&verdict)
	log := &m.spec.Log
	switch {
	case ctx.Err() != nil:
	case verdict.Usable() && m.Guessed(&verdict):
		m.state.say(true, "there, and wants the bridge to sign in")
		if *last != wantsSignIn {
			log.Info().Msg(wantsSignIn)
		}
		*last = wantsSignIn
	case verdict.Usable():
		*last = ""
		m.state.say(true, verdict.Era.String()+", "+verdict.Version)
		log.Info().Str(logfield.Era, verdict.Era.String()).Str(logfield.Version, verdict.Version).Msg("the upstream is ready")
	case refused != nil && refused.Own:
		m.state.say(true, "there, and refuses the configured Authorization")
		log.Warn().Msg(refused.Detail)
	case refused != nil:
		m.state.say(true, "there, and wants clients to authorize")
		log.Info().Msg("the upstream is there and wants clients to authorize")
	case m.Relayed(&verdict):
		m.state.say(true, "a legacy server; clients are relayed to it") // the mount has said so in the log
	default:
		text := verdict.Err.Error()
		m.state.say(false, text)
		if text != *last {
			log.Warn().Str(logfield.Era, verdict.Proven().String()).Msg(upstream.Advice(&verdict) + " (the bridge keeps trying)")
			*last = text
		}
		return false
	}
	return true
}
