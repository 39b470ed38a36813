// Package rates bounds how fast requests may come, and how many may be under way: of a
// session, of a principal, and from an address. A request must be within all of these; one that is refused counts
// for none. Whoever was not heard of for longest is forgotten first, so that the table
// stays bounded whatever identities are made up.
package rates

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// remembered is how many sessions, principals and addresses each are remembered.
const remembered = 16 << 10

// Rate is how many requests may come: so many at once, and so many a second on average.
// The zero Rate is without bounds.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Options are the rates. A nil Factor is 1 for everybody.
type Options struct {
	Session, Principal, Address Rate
	AtOnce                      AtOnce
	// Factor is that of a tier, by which what bounds a session and a principal is
	// multiplied.
	Factor map[string]float64
}

// Sender is whom a request is of. A part that is empty is not bounded.
type Sender struct{ Session, Principal, Address, Tier string }

// Limiter knows who has sent how much. It is safe for concurrent use. The nil Limiter
// lets everything pass.
type Limiter struct {
	factor map[string]float64
	tables [3]table
	crowds [2]crowd // of principals, of addresses
}

// table has the buckets of one kind of sender.
type table struct {
	rate    Rate
	tiered  bool
	buckets *lru.Cache[string, *bucket]
}

// New returns a limiter, nil when there is nothing to bound.
func New(opt Options) *Limiter {
	if opt.Session == (Rate{}) && opt.Principal == (Rate{}) && opt.Address == (Rate{}) && opt.AtOnce == (AtOnce{}) && len(opt.Factor) == 0 {
		return nil
	}
	l := &Limiter{factor: opt.Factor}
	l.crowds[0].most, l.crowds[1].most, l.crowds[0].tiered = opt.AtOnce.Principal, opt.AtOnce.Address, true
	for i := range l.crowds {
		l.crowds[i].inside = make(map[string]int)
	}
	for i, r := range [...]Rate{opt.Session, opt.Principal, opt.Address} {
		buckets, _ := lru.New[string, *bucket](remembered) // the only error is a size below 1
		l.tables[i] = table{rate: r, tiered: i < 2, buckets: buckets}
	}
	return l
}

// Admit counts n requests, or returns after what time the sender may try again, at
// least a second. More than may come at once pass together when nothing has come for long
// enough, and all of them are counted: what comes next waits for that much longer.
func (l *Limiter) Admit(s Sender, n int) (again time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	now := time.Now()
	var taken [len(l.tables)]*bucket
	for i, key := range [...]string{s.Session, s.Principal, s.Address} {
		if key == "" || l.tables[i].rate == (Rate{}) {
			continue
		}
		b, r := l.tables[i].bucket(key, l.FactorOf(s.Tier), now)
		if wait := b.take(r, n, now); wait > 0 {
			giveBack(taken[:i], n)
			return max(wait, time.Second), false
		}
		taken[i] = b
	}
	return 0, true
}

// giveBack undoes what a request took that is refused by another rate.
func giveBack(taken []*bucket, n int) {
	for _, b := range taken {
		if b != nil {
			b.giveBack(n)
		}
	}
}

// bucket returns that of a sender, and its rate.
func (t *table) bucket(key string, factor float64, now time.Time) (*bucket, Rate) {
	r := t.rate
	if t.tiered {
		r = Rate{PerSecond: r.PerSecond * factor, Burst: max(1, int(float64(r.Burst)*factor))}
	}
	if b, ok := t.buckets.Get(key); ok {
		return b, r
	}
	fresh := newBucket(r, now)
	if before, ok, _ := t.buckets.PeekOrAdd(key, fresh); ok {
		return before, r
	}
	return fresh, r
}
