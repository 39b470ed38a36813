package passthrough

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/hop"
)

// talk writes a request to a proxy in front of server and returns the response.
func talk(t *testing.T, server *httptest.Server, policy hop.Policy, request string) (*http.Response, string) {
	t.Helper()
	u, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	proxy := New(Options{URL: u, Policy: policy})
	front := httptest.NewServer(proxy)
	t.Cleanup(func() { proxy.Close(); front.Close() })
	nc, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_, _ = io.WriteString(nc, strings.ReplaceAll(request, "\n", "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

// H-12: no client gets a connection to the server of its own.
func TestH12NoUpgradeCrosses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Upgrade", "Connection", "Http2-Settings", "Te", "X-Hop"} {
			if v := r.Header[name]; v != nil {
				t.Errorf("the server got %s %q", name, v)
			}
		}
		w.Header().Set("Upgrade", "raw")
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	defer server.Close()
	resp, _ := talk(t, server, hop.Policy{}, "POST /mcp HTTP/1.1\nHost: x\nConnection: Upgrade, HTTP2-Settings, X-Hop\nUpgrade: raw\nHTTP2-Settings: a\nTe: trailers\nX-Hop: 1\nContent-Length: 2\n\n{}")
	if resp.StatusCode != http.StatusBadGateway || resp.Header.Get("Upgrade") != "" {
		t.Errorf("the client got %d %v", resp.StatusCode, resp.Header)
	}
}

// H-12: what was taken off the header does not come back behind the body.
func TestH12NoTrailerCrosses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if len(r.Trailer) > 0 {
			t.Errorf("the server got the trailer %v", r.Trailer)
		}
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.WriteString(w, "ok")
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "1")
	}))
	defer server.Close()
	resp, body := talk(t, server, hop.Policy{DropAuthorization: true},
		"POST /mcp HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nTrailer: Authorization\n\n2\n{}\n0\nAuthorization: Bearer smuggled\nX-Forwarded-For: 6.6.6.6\n\n")
	if body != "ok" || len(resp.Trailer) > 0 || resp.Header.Get("Trailer") != "" {
		t.Errorf("the client got %q %v %v", body, resp.Header, resp.Trailer)
	}
}

// Who gets no response is told whether the server may have had the request, and nothing that it sent.
func TestWhoGetsNoResponseIsToldWhy(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "was lost before it answered; whether the request was executed is not known",
		"HTTP/1.1 200 OK\r\nContent-": "was lost before it answered",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("secret", 20<<10): "head too large); whether the request was executed is not known",
		"secret\r\n\r\n": "does not answer in HTTP/1.1",
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00": "speaks only HTTP/2",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			nc, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			_, _ = io.WriteString(nc, text)
		}))
		resp, body := talk(t, server, hop.Policy{}, "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}")
		if resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, want) || strings.Contains(body, "secret") {
			t.Errorf("%q: %d %s", want, resp.StatusCode, body)
		}
		server.Close()
	}
	gone := httptest.NewUnstartedServer(nil)
	gone.URL = "http://" + gone.Listener.Addr().String()
	_ = gone.Listener.Close()
	if _, body := talk(t, gone, hop.Policy{}, "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}"); !strings.Contains(body, "cannot reach") {
		t.Errorf("a server that is not there: %s", body)
	}
}

// How long connecting may take is said once, for all ways to a server, the handshake included.
func TestAHandshakeTakesNoLongerThanConnectingMay(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	proxy := New(Options{URL: &url.URL{Scheme: "https", Host: silent.Addr().String(), Path: "/mcp"}, DialTimeout: time.Millisecond})
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader("{}")))
	if w.Code != http.StatusBadGateway || ctx.Err() != nil {
		t.Errorf("%d, %v", w.Code, ctx.Err())
	}
}
