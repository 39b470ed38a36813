package passthrough

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpbridge/bridge/internal/hop"
)

// saying is a server that says one thing, and counts who asked.
func saying(t *testing.T, asked *int, status int, body string, header http.Header) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server
}

// A browser may open the bridge's address where nothing says that it is one: a page of the
// server would run on the origin of the bridge, and of all other servers behind it.
func TestAPageOfTheServerIsText_H12(t *testing.T) {
	const page = "<script>alert(1)</script>"
	for sent, want := range map[string]string{
		"application/json": "application/json", "Application/JSON; charset=utf-8": "Application/JSON; charset=utf-8",
		"application/problem+json": "application/problem+json", "text/event-stream": "text/event-stream",
		"text/html": "text/plain", "text/html; charset=utf-7": "text/plain", "text/javascript": "text/plain", "image/svg+xml": "text/plain",
		"application/xhtml+xml": "text/plain", "": "text/plain", "nonsense": "text/plain",
		"application/json, text/html": "text/plain", "application/json;a=b,text/html": "text/plain", "application/jsonp": "text/plain",
	} {
		var asked int
		header := http.Header{"Content-Type": {sent, "text/html"}}
		if sent == "" {
			header["Content-Type"] = nil // none, and not what net/http makes of the body
		}
		server := saying(t, &asked, http.StatusBadGateway, page, header)
		resp, body := talk(t, server, hop.Policy{}, "GET /mcp HTTP/1.1\nHost: x\n\n")
		if got := resp.Header["Content-Type"]; resp.StatusCode != http.StatusBadGateway || body != page || len(got) != 1 || got[0] != want {
			t.Errorf("%q came as %q with %d %q", sent, got, resp.StatusCode, body)
		}
		sandboxed := resp.Header.Get("Content-Security-Policy") == "default-src 'none'; sandbox; frame-ancestors 'none'"
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || sandboxed != (want == "text/plain") {
			t.Errorf("%q came with %v", sent, resp.Header)
		}
	}
}

func TestNothingToShowHasNoTypeMadeUp(t *testing.T) {
	var asked int
	server := saying(t, &asked, http.StatusAccepted, "", nil)
	resp, _ := talk(t, server, hop.Policy{}, "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}")
	if resp.StatusCode != http.StatusAccepted || resp.Header["Content-Type"] != nil || resp.Header["Content-Security-Policy"] != nil {
		t.Errorf("the client got %d %v", resp.StatusCode, resp.Header)
	}
}

// What a browser asks for to show, or to run, no server is asked for.
func TestWhatABrowserOpensIsNotHandedOn_H12(t *testing.T) {
	for _, tc := range []struct {
		request, fields string
		goes            bool
	}{
		{"GET", "Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\nSec-Fetch-Site: none", false},
		{"POST", "Sec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\nSec-Fetch-Site: same-origin", false},
		{"GET", "Sec-Fetch-Mode: no-cors\nSec-Fetch-Dest: script", false},
		{"GET", "Sec-Fetch-Mode: same-origin\nSec-Fetch-Dest: serviceworker\nService-Worker: script", false},
		{"GET", "Service-Worker: script", false},
		{"GET", "Sec-Fetch-Dest: iframe", false},
		{"GET", "Sec-Fetch-Dest: empty\nSec-Fetch-Dest: document", false},
		{"GET", "Sec-Fetch-Mode: cors\nSec-Fetch-Dest: empty", true}, // a page's EventSource or fetch
		{"POST", "Sec-Fetch-Mode: cors\nSec-Fetch-Dest: empty\nSec-Fetch-Site: same-origin", true},
		{"GET", "Accept: text/event-stream", true},
		{"GET", "Accept: */*", true},
	} {
		var asked int
		server := saying(t, &asked, http.StatusOK, "{}", http.Header{"Content-Type": {"application/json"}})
		resp, body := talk(t, server, hop.Policy{}, tc.request+" /mcp HTTP/1.1\nHost: x\nContent-Length: 0\n"+tc.fields+"\n\n")
		if (asked == 1) != tc.goes || (resp.StatusCode == http.StatusOK) != tc.goes || !tc.goes && resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s with %q: the server was asked %d times, %d %q", tc.request, tc.fields, asked, resp.StatusCode, body)
		}
	}
}

// A response before the response has a head of its own.
func TestNoInterimResponseCrosses_H12(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	rec := httptest.NewRecorder()
	rec.Header().Set("Access-Control-Allow-Origin", "https://page.example")
	handler(t, server.URL).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/mcp", nil))
	if h := rec.Result().Header; h.Get("Access-Control-Allow-Origin") == "" || h.Get("Link")+h.Get("Set-Cookie") != "" {
		t.Errorf("the client got %v", h)
	}
	resp, body := talk(t, server, hop.Policy{}, "POST /mcp HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}")
	if resp.StatusCode != http.StatusOK || body != "{}" {
		t.Errorf("the client got %d %v %q", resp.StatusCode, resp.Header, body)
	}
}
