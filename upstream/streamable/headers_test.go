package streamable

import (
	"net/http"
	"slices"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// H-12: configured headers are sent and replace the client's, whatever they are
// called; there is one User-Agent; what belongs to the client's hop stays there.
func TestH12HeadersAreTheSameOverEachTransport(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		srv := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { answer(w, g.msg.ID, "{}") })
		opt.Header = http.Header{"Cookie": {"own=1"}, "X-Real-Ip": {"192.0.2.1"}, "X-Key": {"ours"}}
		opt.UserAgent = "bridge"
		c := newClient(t, srv.URL, opt)
		once := call(mcp.MethodToolsCall, `"name":"t"`)
		once.Header = http.Header{
			"Cookie": {"theirs=1"}, "X-Real-Ip": {"198.51.100.1"}, "X-Key": {"theirs"}, "X_key": {"theirs"}, "X_forwarded_for": {"198.51.100.1"},
			"Mcp_name": {"other"}, "User-Agent": {"client"}, "Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Upgrade": {"h2c"}, "Trailer": {"X-T"},
			"Traceparent": {"00"},
		}
		mustDo(t, c, once)
		h := srv.next(t).header
		for name, want := range map[string][]string{
			"Cookie": {"own=1"}, "X-Real-Ip": {"192.0.2.1"}, "X-Key": {"ours"}, "User-Agent": {"bridge"}, "Traceparent": {"00"}, "Mcp-Name": {"t"},
			"X_key": nil, "X_forwarded_for": nil, "Mcp_name": nil, "X-Hop": nil, "Upgrade": nil, "Trailer": nil,
		} {
			if got := h[name]; !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		opt.Header = http.Header{"User-Agent": {"ours"}, "Authorization": {"Bearer ours"}}
		once.Authorization = "Bearer theirs"
		mustDo(t, newClient(t, srv.URL, opt), once)
		if h := srv.next(t).header; !slices.Equal(h["User-Agent"], []string{"ours"}) || !slices.Equal(h["Authorization"], []string{"Bearer ours"}) {
			t.Errorf("%v", h)
		}
		opt.Header, opt.DropAuthorization = nil, true
		mustDo(t, newClient(t, srv.URL, opt), once)
		if h := srv.next(t).header; h["Authorization"] != nil {
			t.Errorf("%v", h)
		}
	})
}
