package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"net/http/httptest"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
)

func probe(t *testing.T, url string, opt HTTPOptions) negotiate.Verdict {
	t.Helper()
	c := newClient(t, url, opt)
	return negotiate.NewProber(negotiate.Options{}).Probe(context.Background(), "", NewPeer(c, *call(mcp.MethodDiscover, "")))
}

func TestProbeOfAGoSDKServer(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		_, url := newSDKServer(t)
		v := probe(t, url, opt)
		if !v.Usable() || v.Version != string(mcp.V20260728) || v.Discover == nil {
			t.Fatalf("verdict %+v", v)
		}
	})
}

// A stateful go-sdk server answers discover, or refuses it, but cannot serve
// the modern revision.
func TestE40ProbeOfAStatefulGoSDKServerNamesItsVersions(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		s := sdk.NewServer(&sdk.Implementation{Name: "old", Version: "1"}, nil)
		h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
		srv := httptest.NewServer(h)
		defer srv.Close()
		v := probe(t, srv.URL, opt)
		if v.Usable() || v.Era != negotiate.Legacy || !strings.Contains(v.Err.Error(), "2025-11-25") {
			t.Fatalf("verdict %+v", v)
		}
	})
}

func TestE40ProbeOfALegacyServerClosesTheSessionItOpened(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt HTTPOptions) {
		p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
			switch {
			case g.method == http.MethodDelete:
				w.WriteHeader(http.StatusNoContent)
			case g.msg.Method == mcp.MethodInitialize:
				w.Header().Set("Mcp-Session-Id", "s1")
				answer(w, g.msg.ID, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
			default:
				http.Error(w, "Missing session", http.StatusBadRequest)
			}
		})
		v := probe(t, p.URL, opt)
		if v.Era != negotiate.Legacy || len(v.Versions) != 1 || !strings.Contains(v.Err.Error(), "2025-06-18") {
			t.Fatalf("verdict %+v", v)
		}
		p.next(t)
		if g := p.next(t); g.header.Get("Mcp-Method") != "" || g.header.Get("Mcp-Protocol-Version") != "" {
			t.Fatalf("modern headers on initialize: %v", g.header)
		}
		if g := p.next(t); g.method != http.MethodDelete || g.header.Get("Mcp-Session-Id") != "s1" {
			t.Fatalf("the session was not closed: %s %v", g.method, g.header)
		}
		p.none(t)
	})
}

// 401, 403, 5xx and timeouts are no evidence of an era: whatever stands in front of a
// server answers like that, too.
func TestA23RefusalsAndServerFailuresAreNoEvidence(t *testing.T) {
	for _, status := range []int{401, 403, 429, 500, 502, 503} {
		eachTransport(t, func(t *testing.T, opt HTTPOptions) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) { w.WriteHeader(status) })
			v := probe(t, p.URL, opt)
			f, ok := errors.AsType[*Failure](v.Err)
			if v.Era != negotiate.Unknown || !ok || f.Status != status {
				t.Fatalf("HTTP %d: %+v", status, v)
			}
			p.next(t)
			p.none(t)
		})
	}
}
