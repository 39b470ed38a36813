package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// health is what is known of one upstream.
type health struct {
	mu    sync.Mutex
	ready bool
	state string // for people
}

func (h *health) set(ready bool, state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready, h.state = ready, state
}

func (h *health) get() (ready bool, state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready, h.state
}

// observe probes the upstream until it has proven to be one that the bridge can
// use, or ctx ends. Nothing waits for it: the upstream may come later, and
// sessions probe for themselves.
func (f *front) observe(ctx context.Context) {
	f.state.set(false, "not probed yet")
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = time.Second, 30*time.Second
	for last := ""; !f.examine(ctx, &last); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// examine probes once, logs what is new and reports whether to stop.
func (f *front) examine(ctx context.Context, last *string) bool {
	verdict := f.Judge(ctx)
	if ctx.Err() != nil {
		return true
	}
	if verdict.Usable() {
		f.state.set(true, "serving")
		f.log.Info().Str(logfield.Era, verdict.Era.String()).Str(logfield.Version, verdict.Version).Msg("the upstream is ready")
		return true
	}
	if failure, ok := errors.AsType[*upstream.Failure](verdict.Err); ok && failure.Cause == upstream.Unauthorized {
		f.state.set(true, "serving; the upstream wants clients to authorize")
		f.log.Info().Msg("the upstream is there and wants clients to authorize")
		return true
	}
	if f.Relayed(&verdict) {
		f.state.set(true, "serving; the upstream is a legacy server, clients are relayed to it")
		return true // the mount has said so in the log
	}
	text := verdict.Err.Error()
	f.state.set(false, text)
	if text != *last {
		f.log.Warn().Str(logfield.Era, eraOf(&verdict).String()).Msg(advice(verdict) + " (the bridge keeps trying)")
		*last = text
	}
	return false
}

// advice adds to a verdict what a person can do about it.
func advice(v negotiate.Verdict) string {
	text := v.Err.Error()
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](v.Err); unknown {
		text += " (upstream-tls.ca)"
	}
	return text
}

// ownPeer asks the upstream in the bridge's own name, without credentials but
// the configured ones.
func ownPeer(caller upstream.Caller) negotiate.Peer {
	return upstream.NewPeer(caller, upstream.Call{Params: translate.OwnParams(mcp.MethodDiscover, nil)})
}

// healthy answers liveness probes: the process serves.
func healthy(w http.ResponseWriter, _ *http.Request) {
	writeStatus(w, http.StatusOK, map[string]any{"status": "ok"})
}

// readiness answers readiness probes: every upstream has been reached once, and
// the bridge is not about to stop.
type readiness struct {
	board    *board
	stopping atomic.Bool
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	status, code := "ready", http.StatusOK
	upstreams := map[string]string{}
	for _, f := range r.board.fronts() {
		ready, state := f.state.get()
		upstreams[f.settings.Path] = state
		if !ready {
			status, code = "waiting for the upstream", http.StatusServiceUnavailable
		}
	}
	if r.stopping.Load() {
		status, code = "stopping", http.StatusServiceUnavailable
	}
	writeStatus(w, code, map[string]any{"status": status, "upstreams": upstreams})
}

func writeStatus(w http.ResponseWriter, code int, body map[string]any) {
	text, err := json.Marshal(body)
	if err != nil {
		code = http.StatusInternalServerError // maps of strings always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}
