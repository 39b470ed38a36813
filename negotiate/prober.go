package negotiate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/internal/ttlcache"
)

// Defaults of Options.
const (
	DefaultMaxTTL    = 5 * time.Minute
	DefaultTimeout   = 15 * time.Second // some clients give initialize 10 s, some 20, most a minute
	DefaultLegacyTTL = 2 * time.Second
)

// lateTTL is how long it is known that a server did not answer in time.
const lateTTL = time.Second

// Bounds of the verdicts kept for single principals: how many, and the bytes of what servers
// said of themselves.
const (
	maxEntries = 1024
	maxBytes   = 16 * maxDiscover
)

// Options configures a Prober. Zero values mean the defaults.
type Options struct {
	// Fallback chooses the version to speak with a server that does not offer
	// 2026-07-28, from the versions that it offers, a JSON array; "" for none.
	// nil refuses all of them (I-8).
	Fallback func(offered []byte) string
	// Guessed reports whether a result of server/discover was made up where the server could not be asked, which proves nothing;
	// nil: none is.
	Guessed func(result []byte) bool
	// MinTTL and MaxTTL bound how long a verdict is served from the cache,
	// whatever ttlMs says. MinTTL 0 asks afresh when the server gave no TTL.
	MinTTL, MaxTTL time.Duration
	// Timeout bounds one probe.
	Timeout time.Duration
	// Setting is the name under which people know that bound; empty: they cannot change it.
	Setting string
	// LegacyTTL is how long a legacy verdict is served, DefaultLegacyTTL at most where the server named no
	// version: something that stands before it may have answered. Other failures are not served again, but for who waited
	// meanwhile and is about to ask.
	LegacyTTL time.Duration
}

// Prober holds the cached verdict on one upstream. It is safe for concurrent
// use.
type Prober struct {
	opt   Options
	group singleflight.Group

	verdicts *ttlcache.Cache[struct{}, Verdict]
	judged   atomic.Uint64 // verdicts so far
	trust    trust
}

// NewProber makes a Prober with nothing cached.
func NewProber(opt Options) *Prober {
	opt.MaxTTL = cmp.Or(opt.MaxTTL, DefaultMaxTTL)
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	opt.LegacyTTL = cmp.Or(opt.LegacyTTL, DefaultLegacyTTL)
	return &Prober{opt: opt, verdicts: ttlcache.New[struct{}, Verdict](ttlcache.Limits{Entries: maxEntries, Bytes: maxBytes})}
}

// Probe returns the verdict on the upstream as principal sees it: from the
// cache while it is fresh, else by asking. Callers of one principal that ask at
// the same time share one question, which outlives the caller that began it.
// principal "" means without credentials; distinct credentials need distinct
// principals.
func (p *Prober) Probe(ctx context.Context, principal string, peer Peer) Verdict {
	if v, _, ok := p.verdicts.Get(principal, struct{}{}); ok {
		return v
	}
	return p.Again(ctx, principal, peer)
}

// Again is Probe for a caller who doubts what is kept: it asks.
func (p *Prober) Again(ctx context.Context, principal string, peer Peer) Verdict {
	done := p.group.DoChan(principal, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.Timeout)
		defer cancel()
		_, epoch, _ := p.verdicts.Get(principal, struct{}{})
		v := judge(ctx, peer, p.opt.Fallback, func() bool { return p.trust.stands(principal == "") })
		p.learn(&v, principal == "")
		v.Generation = p.judged.Add(1)
		if errors.Is(v.Err, context.DeadlineExceeded) {
			v.Err = &late{v.Err, p.opt.Timeout, p.opt.Setting}
		}
		p.verdicts.Put(principal, struct{}{}, epoch, ttlcache.Item[Verdict]{Value: v, Size: len(v.Discover), TTL: p.ttl(&v), Public: v.public})
		return v, nil
	})
	select {
	case r := <-done:
		return r.Val.(Verdict)
	case <-ctx.Done():
		return Verdict{Era: Unknown, Err: context.Cause(ctx)}
	}
}

// late is the failure of a probe that took too long, and says how long that is.
type late struct {
	error
	limit   time.Duration
	setting string
}

func (l *late) Error() string {
	text := fmt.Sprintf("%s: it has %s for its first answer", l.error, l.limit)
	if l.setting != "" {
		text += " (" + l.setting + ")"
	}
	return text
}

func (l *late) Unwrap() error { return l.error }

// Timeout returns how long a probe may take.
func (p *Prober) Timeout() time.Duration { return p.opt.Timeout }

// Forget drops every cached verdict, for when the upstream proved it wrong.
func (p *Prober) Forget() { p.verdicts.Drop(func(struct{}) bool { return true }) }

// ttl is how long a verdict may be served (B-40).
func (p *Prober) ttl(v *Verdict) time.Duration {
	switch {
	case v.Err == nil:
		return min(max(v.ttl, p.opt.MinTTL), p.opt.MaxTTL)
	case v.Proven() == Legacy && !v.Late:
		return p.opt.LegacyTTL
	case v.Era == Legacy:
		return min(p.opt.LegacyTTL, DefaultLegacyTTL)
	}
	if _, ok := errors.AsType[*late](v.Err); ok { // who has waited once for a session does not wait twice
		return lateTTL
	}
	return 0
}

// standsFor is how long a server that has proved to be modern may fail at server/discover before that may be how a legacy one
// takes it, which has come in its place: one that serves both eras answers initialize while it fails.
const standsFor = time.Minute

// lapsesAfter is how long ago a failure is none of the same endeavour any more.
const lapsesAfter = 10 * standsFor

// trust is what a server has proved before it fails.
type trust struct {
	mu     sync.Mutex
	modern bool // it has proved to be
	// It fails for who asks in nobody's name, and for single clients, whose own credentials may be why.
	own, others failing
}

// failing is since when a server fails; zero: it has not since it was last seen to be well.
type failing struct{ since, latest time.Time }

// stands reports, when the server fails, whether it counts as modern still.
func (t *trust) stands(own bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, now := &t.others, time.Now()
	if own {
		of = &t.own
	}
	if of.since.IsZero() || now.Sub(of.latest) > lapsesAfter {
		of.since = now
	}
	of.latest = now
	return t.modern && now.Sub(of.since) < standsFor
}

// set notes what a server has proved.
func (t *trust) set(modern bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modern, t.own, t.others = modern, failing{}, failing{}
}

// learn has a verdict count as proof. That a server is no modern one it proves to who asks in nobody's name: for a
// single client it may only fail.
func (p *Prober) learn(v *Verdict, own bool) {
	switch {
	case v.Err == nil && (p.opt.Guessed == nil || !p.opt.Guessed(v.Discover)):
		p.trust.set(true)
	case v.Proven() == Legacy && own && !v.Late:
		p.trust.set(false)
	}
}

// Well reports whether a result of server/discover, which somebody else has got in nobody's name, is that of a server that can be
// used. Then that counts as proof.
func (p *Prober) Well(result []byte) bool {
	v := judgeResult(result, p.opt.Fallback)
	if v.Err != nil || len(v.Versions) == 0 {
		return false
	}
	p.learn(&v, true)
	return true
}

// Stands reports whether the server, which has failed at server/discover just now when somebody else asked in nobody's name, counts as
// modern still.
func (p *Prober) Stands() bool { return p.trust.stands(true) }
