package mount

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// eras is a handover for a server over HTTP, to which clients of Streamable HTTP
// are handed with whole exchanges. It remembers which sessions are the server's
// own.
type eras struct {
	*handover
	next  http.Handler
	limit int
	idle  time.Duration

	mu      sync.Mutex
	relayed *sessions.Table[struct{}]
}

// Relayer implements downstream.Backend.
func (e *eras) Relayer() downstream.Relayer { return e }

// Bounds on remembering sessions, where Options leaves them open.
const (
	defaultRelayed     = 10_000
	defaultRelayedIdle = 45 * time.Minute
)

func newEras(h *handover, next http.Handler, opt *Options) *eras {
	e := &eras{handover: h, next: next, limit: cmp.Or(opt.Legacy.MaxSessions, defaultRelayed),
		idle: cmp.Or(opt.Legacy.IdleTimeout, defaultRelayedIdle)}
	h.modernised = e.forget
	e.relayed = e.table()
	return e
}

func (e *eras) table() *sessions.Table[struct{}] {
	return sessions.NewTable(sessions.TableOptions[struct{}]{Capacity: e.limit, Idle: e.idle})
}

// Relay implements downstream.Relayer. Only initialize waits for a verdict; what has
// no session follows the latest one.
func (e *eras) Relay(r *http.Request, msg *jsonrpc.Message, caller func() downstream.Caller) http.Handler {
	session := r.Header.Get(mcp.HeaderSessionID)
	switch {
	case msg != nil && msg.Method == mcp.MethodInitialize && msg.Kind() == jsonrpc.Request:
		if !e.relays(r.Context(), caller(), msg.Params) {
			return nil
		}
		r.Header = maps.Clone(r.Header)       // which the connection's requests share
		delete(r.Header, mcp.HeaderSessionID) // of a session that is dead: this opens a new one
		return opening{e.next}
	case e.legacyOnly.Load(), session != "" && e.holds(session):
		return e.next
	}
	return nil
}

// forget drops the sessions of a server that has lost them.
func (e *eras) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.relayed = e.table()
}

func (e *eras) sessions() *sessions.Table[struct{}] {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.relayed
}

func (e *eras) holds(session string) bool {
	_, ok := e.sessions().Get(session)
	return ok
}

// own returns how many sessions of the server only this mount knows. Those of a
// legacy server need nobody to know them.
func (e *eras) own() int {
	if e.legacyOnly.Load() {
		return 0
	}
	table := e.sessions()
	table.Expire()
	return table.Len()
}

// opening marks a request that opens a session of the server.
type opening struct{ next http.Handler }

type openingKey struct{}

// ServeHTTP implements http.Handler.
func (o opening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), openingKey{}, true)))
}

// answered learns the sessions of the server, and their ends, from the heads of
// its responses.
func (m *Mount) answered(resp *http.Response) {
	if m.eras == nil {
		return
	}
	switch table := m.eras.sessions(); {
	case resp.Request.Context().Value(openingKey{}) != nil:
		if session := resp.Header.Get(mcp.HeaderSessionID); session != "" {
			table.Expire()
			table.Add(session, struct{}{})
		}
	case resp.Request.Method == http.MethodDelete && resp.StatusCode < http.StatusMultipleChoices:
		table.Remove(resp.Request.Header.Get(mcp.HeaderSessionID))
	}
}
