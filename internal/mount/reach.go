package mount

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// reachTimeout bounds the wait for an answer that only shows that somebody is there.
const reachTimeout = 10 * time.Second

// Reach asks the server whether it is there, and returns why not. Whatever it
// answers shows that it is; when it answers as a server of another era would, what
// follows from that takes effect. A legacy command is always there: each client
// starts its own.
func (m *Mount) Reach(ctx context.Context) error {
	if m.verdicts.everyone && m.verdicts.legacyOnly.Load() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	answer, err := m.Upstream.Do(within, &upstream.Call{Method: mcp.MethodDiscover, Params: probeParams}, nil)
	failure, _ := errors.AsType[*upstream.Failure](err)
	switch {
	case failure == nil:
	case failure.Cause == upstream.Unauthorized:
		m.challenged(failure)
		return nil // it is there
	case failure.Cause == upstream.Timeout && m.verdicts.everyone:
		return nil // its guard knows better whether it is only busy
	case absent(failure):
		return failure
	}
	modern := err == nil && answer.Error == nil
	answer.Release()
	if modern == m.verdicts.legacyOnly.Load() && ctx.Err() == nil {
		m.Prober.Forget()
		m.Judge(ctx)
	}
	return nil
}

// absent reports a failure that shows nobody who could answer.
func absent(f *upstream.Failure) bool {
	switch f.Cause {
	case upstream.Unreachable, upstream.TLS, upstream.Timeout, upstream.Lost, upstream.ServerError:
		return true
	case upstream.Busy:
		return f.Status != http.StatusTooManyRequests
	}
	return false
}
