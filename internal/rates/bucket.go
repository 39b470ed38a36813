package rates

import (
	"sync"
	"time"
)

// bucket is what one sender may still send. It can owe: an array with more requests than
// fit into a full bucket passes when it is full, or it never would, and what it took
// beyond that is missing until time has brought it. So the average holds, whatever comes
// together.
type bucket struct {
	mu   sync.Mutex
	rate Rate
	has  float64 // below 0: owes
	at   time.Time
}

func newBucket(r Rate, now time.Time) *bucket {
	return &bucket{rate: r, has: float64(r.Burst), at: now}
}

// take takes n requests out, or nothing and says after what time they may come.
func (b *bucket) take(r Rate, n int, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(r, now)
	if missing := float64(min(n, r.Burst)) - b.has; missing > 0 {
		return max(1, seconds(missing/r.PerSecond))
	}
	b.has -= float64(n)
	return 0
}

// refill adds what time has brought. Who changes its tier has the new rate from now on.
func (b *bucket) refill(r Rate, now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.has += passed.Seconds() * b.rate.PerSecond
		b.at = now
	}
	b.rate = r
	b.has = min(b.has, float64(r.Burst))
}

// giveBack returns what take took.
func (b *bucket) giveBack(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.has += float64(n)
}

// seconds is a time that fits a Duration.
func seconds(s float64) time.Duration {
	const most = float64(1 << 62)
	return time.Duration(min(s*float64(time.Second), most))
}
