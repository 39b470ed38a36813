package streamable

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

func probe(t *testing.T, url string, opt Options) negotiate.Verdict {
	t.Helper()
	c := newClient(t, url, opt)
	return negotiate.NewProber(negotiate.Options{}).Probe(context.Background(), "", upstream.NewPeer(c, *call(mcp.MethodDiscover, "")))
}

func TestProbeOfAGoSDKServer(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
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
	eachTransport(t, func(t *testing.T, opt Options) {
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
	eachTransport(t, func(t *testing.T, opt Options) {
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
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) { w.WriteHeader(status) })
			v := probe(t, p.URL, opt)
			f, ok := errors.AsType[*upstream.Failure](v.Err)
			if v.Era != negotiate.Unknown || !ok || f.Status != status {
				t.Fatalf("HTTP %d: %+v", status, v)
			}
			p.next(t)
			if status == http.StatusInternalServerError { // whether it answers initialize is looked at
				p.next(t)
			}
			p.none(t)
		})
	}
}

// TestE40LegacyServersRefuseWithWhateverTheyLike: what says nothing of a modern error is none, and a server that fails at a method
// which it does not know is a legacy one when it answers initialize (versioning, "Compatibility Matrix").
func TestE40LegacyServersRefuseWithWhateverTheyLike(t *testing.T) {
	for _, status := range []int{400, 404, 405, 406, 409, 410, 415, 422, 426, 500, 501} {
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
				if g.msg.Method == mcp.MethodInitialize {
					answer(w, g.msg.ID, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
					return
				}
				http.Error(w, "Unexpected message, expect initialize request", status)
			})
			if v := probe(t, p.URL, opt); v.Proven() != negotiate.Legacy {
				t.Errorf("HTTP %d: %+v", status, v)
			}
		})
	}
}

// A server has shown what it is before the end of its session, and one whose stream says nothing has answered all the same.
func TestTheDiagnosisWaitsForNothingElse(t *testing.T) {
	forever := func(r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		status int // of initialize
		era    negotiate.Era
	}{"an end that hangs": {200, negotiate.Legacy}, "a stream that says nothing": {400, negotiate.Legacy}} {
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, r *http.Request) {
				switch {
				case g.method == http.MethodDelete:
					forever(r)
				case g.method == http.MethodGet:
					w.Header().Set("Content-Type", "text/event-stream")
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
					forever(r)
				case g.msg.Method == mcp.MethodInitialize && c.status == 200:
					w.Header().Set("Mcp-Session-Id", "s1")
					answer(w, g.msg.ID, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
				default:
					http.Error(w, "no", http.StatusBadRequest)
				}
			})
			client := newClient(t, p.URL, opt)
			v := negotiate.NewProber(negotiate.Options{Timeout: time.Hour}).Probe(t.Context(), "", upstream.NewPeer(client, *call(mcp.MethodDiscover, "")))
			if v.Era != c.era || errors.Is(v.Err, context.DeadlineExceeded) {
				t.Errorf("%s: %+v", name, v)
			}
		})
	}
}

// They are none when the second look is refused, either, be it that of the handshake or of the stream of HTTP+SSE.
func TestA23ARefusedSecondLookIsNoEvidence(t *testing.T) {
	for name, refuses := range map[string]func(g *got) bool{
		"the handshake": func(g *got) bool { return strings.Contains(string(g.body), `"initialize"`) },
		"the stream":    func(g *got) bool { return g.method == http.MethodGet },
	} {
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
				if refuses(g) {
					w.Header().Set("WWW-Authenticate", "Bearer")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				http.Error(w, "Cannot POST /sse", http.StatusNotFound)
			})
			v := probe(t, p.URL, opt)
			if f := upstream.Refused(&v); v.Era != negotiate.Unknown || f == nil || f.Status != http.StatusUnauthorized || len(f.Challenge) != 1 {
				t.Errorf("%s is refused: %+v", name, v)
			}
		})
	}
}

// TestE42ProbeTellsLegacyServersThatRedirect, too.
func TestE42ProbeTellsLegacyServersThatRedirect(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, r *http.Request) {
			switch {
			case r.URL.Path != "/mcp/":
				w.Header().Set("Location", "/mcp/")
				w.WriteHeader(http.StatusTemporaryRedirect)
			case strings.Contains(string(g.body), `"initialize"`):
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(g.msg.ID) + `,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`))
			default:
				http.Error(w, "no session", http.StatusBadRequest)
			}
		})
		if v := probe(t, p.URL, opt); !v.LegacyServer() {
			t.Errorf("verdict %+v", v)
		}
	})
}

// 2025-11-25, transports, "Backwards Compatibility": only a refused POST asks for the
// transport of 2024-11-05, and only an endpoint proves it.
func TestProbeTellsServersOfHTTPSSE(t *testing.T) {
	const endpoint = "event: endpoint\ndata: /messages\n\n"
	for _, tc := range []struct {
		post   int
		stream string
		asked  bool
		is     bool
	}{
		{404, endpoint, true, true},
		{405, endpoint, true, true},
		{400, ": hello\n\n" + endpoint, true, true},
		{404, "event: message\ndata: {}\n\n", true, false},
		{404, "", true, false},
	} {
		eachTransport(t, func(t *testing.T, opt Options) {
			p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, r *http.Request) {
				if g.method == http.MethodPost {
					http.Error(w, "Cannot POST /sse", tc.post)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(tc.stream))
				_ = http.NewResponseController(w).Flush()
				if tc.is {
					<-r.Context().Done() // the probe lets go of the stream
				}
			})
			v := probe(t, p.URL, opt)
			if v.HTTPSSE != tc.is || v.LegacyServer() != tc.is || tc.is && !strings.Contains(v.Err.Error(), "only HTTP+SSE") {
				t.Errorf("%d and %q: verdict %+v", tc.post, tc.stream, v)
			}
			p.next(t)
			p.next(t)
			if asked := len(p.seen) == 1; asked != tc.asked {
				t.Errorf("%d: asked for a stream: %v", tc.post, asked)
			}
		})
	}
}
