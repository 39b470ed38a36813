package redisstore

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"
)

// demotions tells connections that a server which they are to write to is a replica by now. Behind an address
// that moves with the primary (a proxy, a Service of Kubernetes, a name) the old one may live on, and keep its connections: only
// a new one leads to the new primary.
type demotions struct {
	count atomic.Int64
	last  atomic.Int64 // when, in nanoseconds since began; 0: never
}

// began is what times are counted from, which no clock that is set moves.
var began = time.Now()

// demotionsApart is how long no other demotion counts: where every connection leads to a replica, commands would do
// nothing but connect.
const demotionsApart = 250 * time.Millisecond

var errDemoted = errors.New("READONLY: the server has become a replica; the next connection may lead to the new primary")

// heard looks at an error that a server has answered a command with.
func (d *demotions) heard(answer []byte) {
	text := string(answer)
	if !strings.HasPrefix(text, "READONLY ") && !strings.Contains(text, " -READONLY ") { // behind its own words in the scripts of Redis 6
		return
	}
	now := int64(time.Since(began))
	if last := d.last.Load(); (last == 0 || now-last >= int64(demotionsApart)) && d.last.CompareAndSwap(last, now) {
		d.count.Add(1)
	}
}
