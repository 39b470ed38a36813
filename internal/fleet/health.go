package fleet

import (
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/logfield"
)

// health is what is known of one upstream.
type health struct {
	ready atomic.Bool
	said  atomic.Pointer[string] // for people
}

func (h *health) say(ready bool, text string) {
	h.said.Store(&text)
	h.ready.Store(ready)
}

// healthy answers liveness probes: the process serves.
func healthy(w http.ResponseWriter, _ *http.Request) { writeStatus(w, http.StatusOK, "ok") }

// readiness answers readiness probes: every upstream can be reached, and the
// bridge is not about to stop. Which upstream is missing, and why, stands in the
// log: who asks may be anybody.
type readiness struct {
	fleet    *Fleet
	stopping atomic.Bool
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if r.stopping.Load() {
		writeStatus(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	for _, m := range r.fleet.Members() {
		if !m.state.ready.Load() {
			writeStatus(w, http.StatusServiceUnavailable, "waiting for the upstream")
			return
		}
	}
	if degraded := r.fleet.opt.Degraded; degraded != nil && degraded() {
		writeStatus(w, http.StatusOK, "degraded: the store of sessions cannot be reached")
		return
	}
	writeStatus(w, http.StatusOK, "ready")
}

// guarded keeps web pages out that came by DNS rebinding, for which they need a
// name (E-11). Probes name an address, or over HTTP/1.0 no host at all, which no browser does.
func (f *Fleet) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if f.opt.Host != nil && !f.opt.Host(r.Host) && r.Host != "" && !isAddress(r.Host) {
			f.strange.Info().Str("host", clip.Line(r.Host)).Str(logfield.Remote, r.RemoteAddr).Msg("refused a request: its host is not allowed; see the setting allowed-hosts")
			writeStatus(w, http.StatusForbidden, "host is not allowed; see the setting allowed-hosts")
			return
		}
		next(w, r)
	}
}

// isAddress reports a host that is an IP address, with or without a port.
func isAddress(host string) bool {
	if _, err := netip.ParseAddrPort(host); err == nil {
		return true
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// refuseMethod answers what is no probe at a probe's path.
func refuseMethod(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	writeStatus(w, http.StatusMethodNotAllowed, "method is not allowed here; use GET")
}

// writeStatus answers a probe. The text is one of ours and needs no escapes.
func writeStatus(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, `{"status":"`+status+"\"}\n")
}
