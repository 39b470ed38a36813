package stdio

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Bounds on what may end a process that others share.
const (
	// freeEnds is how many processes in a row may end under requests of one kind before such
	// requests are refused for a while: a tool crashes now and then, and whose fault an end is shows
	// only when it comes again. freeEndsOfParty is the same for all that a party asks, counted
	// where a kind has yet to be refused: whoever makes up new tools is refused altogether.
	freeEnds        = 2
	freeEndsOfParty = 8
	// firstHold is how long the first refusals last, doubled each time, up to longestHold.
	firstHold   = time.Second
	longestHold = 5 * time.Minute
	// blameLasts is after how long without another one what ended before is forgotten.
	blameLasts = time.Minute

	maxParties = 1024
	maxKinds   = 32 // of one party; of more only the party counts
)

// crashes tells under whose requests processes ended, and refuses those for a while that
// it happened to again and again, so that others are served.
type crashes struct {
	seed maphash.Seed
	hold time.Duration // firstHold; tests look longer
	some atomic.Bool   // there are parties: nearly never

	mu      sync.Mutex
	parties map[string]*party
}

func newCrashes() *crashes {
	return &crashes{seed: maphash.MakeSeed(), hold: firstHold, parties: make(map[string]*party)}
}

// party is whose requests are blamed together.
type party struct {
	all   blame
	kinds map[uint64]*blame
}

// suspect is a kind of request of one party: a tool that it calls, or a method.
type suspect struct {
	party string
	kind  uint64
}

// partyOf tells whose a request is; "" for the bridge's own, which nobody is blamed for, and
// where nobody is told apart.
func partyOf(call *upstream.Call) string { return cmp.Or(call.Tenant, call.Account.Owner()) }

// suspectOf reads a request, which may be long, and takes no lock of the crashes.
func (c *crashes) suspectOf(call *upstream.Call) suspect {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(call.Method)
	if mcp.HasName(call.Method) {
		name, _ := rawjson.Name(rawjson.Get(call.Params, "name")) // however it is spelled
		_, _ = h.WriteString("\x00" + name)
	}
	return suspect{partyOf(call), h.Sum64()}
}

// refuses returns for how long such a request is refused, and how many processes ended under it.
func (c *crashes) refuses(call *upstream.Call) (wait time.Duration, ends int) {
	if !c.some.Load() || !c.blames(partyOf(call)) {
		return 0, 0
	}
	of := c.suspectOf(call)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parties[of.party]
	if p == nil {
		return 0, 0
	}
	to := &p.all
	if k := p.kinds[of.kind]; k != nil && k.until.After(to.until) {
		to = k
	}
	return time.Until(to.until), to.ends
}

// blames reports whether a process ended under a party lately.
func (c *crashes) blames(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parties[name]
	if p == nil {
		return false
	}
	if p.quiet(time.Now()) {
		delete(c.parties, name)
		c.some.Store(len(c.parties) > 0)
		return false
	}
	return true
}

// strike notes that a run of the process ended under a request of a suspect, and reports whether
// others like it are refused now.
func (c *crashes) strike(s suspect, run uint64) (refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	p := c.partyLocked(s.party, now)
	if p == nil {
		return false
	}
	k := p.kind(s.kind, now)
	return k != nil && k.strike(run, freeEnds, c.hold, now) || p.all.strike(run, freeEndsOfParty, c.hold, now)
}

// partyLocked finds or makes one; nil when there is no room.
func (c *crashes) partyLocked(name string, now time.Time) *party {
	if p := c.parties[name]; p != nil || name == "" {
		return p
	}
	if len(c.parties) >= maxParties {
		for name, p := range c.parties {
			if p.quiet(now) {
				delete(c.parties, name)
			}
		}
	}
	if len(c.parties) >= maxParties {
		return nil
	}
	p := &party{kinds: make(map[uint64]*blame)}
	c.parties[name] = p
	c.some.Store(true)
	return p
}

func (p *party) kind(of uint64, now time.Time) *blame {
	if k := p.kinds[of]; k != nil {
		return k
	}
	if len(p.kinds) >= maxKinds {
		p.quiet(now)
	}
	if len(p.kinds) >= maxKinds {
		return nil
	}
	k := new(blame)
	p.kinds[of] = k
	return k
}

// quiet forgets the kinds that are, and reports whether nothing is left to remember.
func (p *party) quiet(now time.Time) bool {
	for of, k := range p.kinds {
		if k.quiet(now) {
			delete(p.kinds, of)
		}
	}
	return len(p.kinds) == 0 && p.all.quiet(now)
}

// blame is how many processes ended in a row under requests of one kind or party.
type blame struct {
	ends  int
	run   uint64 // the last one that was counted: many requests may have been at it, and tell of it late
	last  time.Time
	until time.Time // such requests are refused until then
}

// strike counts the end of a run, once, and not after that of a later one, and reports whether there were
// more than the free ones.
func (b *blame) strike(run uint64, free int, hold time.Duration, now time.Time) bool {
	if run > b.run {
		if b.quiet(now) {
			b.ends = 0
		}
		b.run, b.last = run, now
		if b.ends++; b.ends > free {
			b.until = now.Add(min(hold<<min(b.ends-free-1, 16), longestHold))
		}
	}
	return b.ends > free
}

func (b *blame) quiet(now time.Time) bool {
	return now.Sub(b.last) > blameLasts && now.Sub(b.until) > blameLasts
}

// refusal is what a request gets that is held.
func (o *Options) refusal(wait time.Duration, ends int) *upstream.Failure {
	return &upstream.Failure{Cause: upstream.Busy, RetryAfter: wait, Detail: fmt.Sprintf(
		"the upstream command %s ended %d times in a row under requests like this one of the same client; they are refused for %s, so that others are served (its messages are in the log)",
		o.name(), ends, max(wait, time.Second).Round(time.Second))}
}

// broke notes whose a request is that has no answer: the process ended under it, or may do so yet.
func (s *Client) broke(c *child, call *upstream.Call, err error) {
	f, ok := err.(*upstream.Failure)
	switch {
	case !ok || !f.Sent:
	case call.Method == mcp.MethodDiscover && !s.answers.Load(): // that an older server ends at it is nobody's fault (Signs)
	case f.Cause == upstream.Lost:
		s.strike(s.crashes.suspectOf(call), c)
	case f.Cause == upstream.Canceled, f.Cause == upstream.Timeout:
		s.leave(c, call)
	}
}

// leave notes that somebody has left something with a child, which may end it later.
func (s *Client) leave(c *child, call *upstream.Call) {
	of := s.crashes.suspectOf(call)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child != c { // it is buried, and nobody looks any more
		s.strike(of, c)
		return
	}
	if c.left == nil {
		c.left = make(map[suspect]struct{})
	}
	c.left[of] = struct{}{}
	for some := range c.left { // of too many most are those of who leaves most
		if len(c.left) <= maxLeft {
			break
		}
		delete(c.left, some)
	}
}

// strike blames somebody for the end of a child, unless the bridge has ended it.
func (s *Client) strike(of suspect, c *child) {
	if s.ctx.Err() == nil && !c.ours.Load() && s.crashes.strike(of, c.run) {
		s.seldom.Warn().Str("command", s.opt.name()).
			Msg("the upstream process ended again and again under requests of one client; others like them are refused for a while")
	}
}
