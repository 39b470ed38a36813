package legacy

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/rawjson"
)

// errLapsed ends a connection that can no longer act for anybody.
var errLapsed = errors.New("the credentials of this connection are no longer valid; connect again with new ones")

// lapse tells when the credentials that a WebSocket came with have had their time
// (E-34). Its client has no other way to bring new ones than another connection.
// Requests under way were authorized when they began, so they may still end.
type lapse struct {
	matters bool
	refused atomic.Bool // by the upstream, with 401
	expires time.Time   // zero: unknown
}

// clockSkew is how far the clock of a token's issuer may be behind ours.
const clockSkew = time.Minute

// watch begins to look after the credentials. A token whose time was over before it
// was taken is left to the upstream to judge.
func (l *lapse) watch(auth string) {
	l.matters = true
	seconds, ok := rawjson.Int(rawjson.Get(claimsOf(auth), "exp"))
	if expires := time.Unix(seconds, 0).Add(clockSkew); ok && expires.After(time.Now()) {
		l.expires = expires
	}
}

// note takes the upstream's refusal of a call that carried the credentials.
func (l *lapse) note(auth string, r *downstream.Refusal) {
	if auth != "" && r.Status == http.StatusUnauthorized {
		l.refused.Store(true)
	}
}

func (l *lapse) over() bool {
	return l.matters && (l.refused.Load() || !l.expires.IsZero() && !time.Now().Before(l.expires))
}

// lapsed reports whether the connection is to be ended.
func (c *channel) lapsed() bool {
	if !c.lapse.over() {
		return false
	}
	c.in.Lock()
	defer c.in.Unlock()
	return len(c.inFlight) == 0
}
