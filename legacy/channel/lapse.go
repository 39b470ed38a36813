package channel

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

// ErrLapsed ends a connection that can no longer act for anybody.
var ErrLapsed = errors.New("the credentials of this connection are no longer valid; connect again with new ones")

// lapse tells when the credentials that a WebSocket or an HTTP+SSE stream came with have had their time
// (E-34). Its client has no other way to bring new ones than another connection: messages beside a stream
// are of the principal that opened it (E-30).
// Requests under way were authorized when they began, so they may still end.
type lapse struct {
	matters bool
	refused atomic.Bool // by the upstream, with 401
	expires time.Time   // zero: unknown
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
