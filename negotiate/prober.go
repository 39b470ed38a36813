package negotiate

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Defaults of Options.
const (
	DefaultMaxTTL    = 5 * time.Minute
	DefaultTimeout   = 8 * time.Second // clients give initialize 10 s
	DefaultLegacyTTL = 2 * time.Second
)

// maxEntries bounds the verdicts kept for single principals.
const maxEntries = 1024

// Options configures a Prober. Zero values mean the defaults.
type Options struct {
	// Draft chooses the version to speak with a server that does not offer
	// 2026-07-28, from the versions that it offers, a JSON array; "" for none.
	// nil refuses every draft (I-8).
	Draft func(offered []byte) string
	// MinTTL and MaxTTL bound how long a verdict is served from the cache,
	// whatever ttlMs says. MinTTL 0 asks afresh when the server gave no TTL.
	MinTTL, MaxTTL time.Duration
	// Timeout bounds one probe.
	Timeout time.Duration
	// LegacyTTL is how long a legacy verdict is served. Other failures are
	// never served again.
	LegacyTTL time.Duration
}

// Prober holds the cached verdict on one upstream. It is safe for concurrent
// use.
type Prober struct {
	opt   Options
	group singleflight.Group

	mu      sync.Mutex
	entries map[string]entry // by principal; anyone's under shared
	epoch   int              // counts Forget, so that older answers are not stored
}

type entry struct {
	verdict Verdict
	expires time.Time
}

// shared is the key of verdicts that everyone may see: those that a server
// calls public and gives to callers without credentials. A public verdict that
// took credentials to get is not shown to those who have none (B-45).
const shared = "\x00shared"

// NewProber makes a Prober with nothing cached.
func NewProber(opt Options) *Prober {
	opt.MaxTTL = cmp.Or(opt.MaxTTL, DefaultMaxTTL)
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	opt.LegacyTTL = cmp.Or(opt.LegacyTTL, DefaultLegacyTTL)
	return &Prober{opt: opt, entries: map[string]entry{}}
}

// Probe returns the verdict on the upstream as principal sees it: from the
// cache while it is fresh, else by asking. Callers of one principal that ask at
// the same time share one question, which outlives the caller that began it.
// principal "" means without credentials; distinct credentials need distinct
// principals.
func (p *Prober) Probe(ctx context.Context, principal string, peer Peer) Verdict {
	if v, ok := p.cached(principal); ok {
		return v
	}
	done := p.group.DoChan(principal, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opt.Timeout)
		defer cancel()
		epoch := p.currentEpoch()
		v := judge(ctx, peer, p.opt.Draft)
		p.keep(principal, v, epoch)
		return v, nil
	})
	select {
	case r := <-done:
		return r.Val.(Verdict)
	case <-ctx.Done():
		return Verdict{Era: Unknown, Err: context.Cause(ctx)}
	}
}

// Forget drops every cached verdict, for when the upstream proved it wrong.
func (p *Prober) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.entries)
	p.epoch++
}

func (p *Prober) currentEpoch() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

func (p *Prober) cached(principal string) (Verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, key := range [...]string{principal, shared} {
		if e, ok := p.entries[key]; ok && now.Before(e.expires) {
			return e.verdict, true
		}
	}
	return Verdict{}, false
}

// keep caches a verdict for as long as it may be served (B-40).
func (p *Prober) keep(principal string, v Verdict, epoch int) {
	ttl := min(max(v.ttl, p.opt.MinTTL), p.opt.MaxTTL)
	if v.Err != nil {
		ttl = 0
		if v.Era == Legacy {
			ttl = p.opt.LegacyTTL
		}
	}
	if ttl <= 0 {
		return
	}
	key := principal
	if v.public && principal == "" {
		key = shared
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epoch != epoch {
		return
	}
	now := time.Now()
	if len(p.entries) >= maxEntries {
		maps.DeleteFunc(p.entries, func(_ string, e entry) bool { return !now.Before(e.expires) })
	}
	if len(p.entries) >= maxEntries {
		clear(p.entries)
	}
	p.entries[key] = entry{verdict: v, expires: now.Add(ttl)}
}
