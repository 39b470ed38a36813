package legacy

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/mcp"
)

func TestHostAndOriginAreChecked_E11(t *testing.T) {
	for _, tc := range []struct {
		name           string
		hosts, origins []string
		host, origin   string
		status         int
	}{
		{"loopback by default", nil, nil, "localhost:8080", "", 200},
		{"loopback address", nil, nil, "127.0.0.9:1", "", 200},
		{"loopback IPv6", nil, nil, "[::1]:8080", "", 200},
		{"loopback IPv6 without port", nil, nil, "[::1]", "", 200},
		{"rebound name", nil, nil, "evil.example:8080", "", 403},
		{"name that starts like loopback", nil, nil, "127.0.0.1.evil.example", "", 403},
		{"listed host", []string{"MCP.example.com"}, nil, "mcp.example.com:443", "", 200},
		{"listed host and port", []string{"mcp.example.com:443"}, nil, "mcp.example.com:443", "", 200},
		{"other port than listed", []string{"mcp.example.com:443"}, nil, "mcp.example.com:80", "", 403},
		{"loopback when a list says otherwise", []string{"mcp.example.com"}, nil, "localhost", "", 403},
		{"any host", []string{"*"}, nil, "whatever", "", 200},

		{"loopback origin", nil, nil, "localhost", "http://localhost:3000", 200},
		{"foreign origin", nil, nil, "localhost", "https://evil.example", 403},
		{"null origin", nil, nil, "localhost", "null", 403},
		{"odd scheme", nil, nil, "localhost", "file://localhost", 403},
		{"listed origin", nil, []string{"https://app.example.com"}, "localhost", "https://APP.example.com", 200},
		{"origin not listed", nil, []string{"https://app.example.com"}, "localhost", "http://localhost:3000", 403},
		{"any origin", nil, []string{"*"}, "localhost", "https://evil.example", 200},
		{"own origin", []string{"mcp.example.com"}, nil, "mcp.example.com", "https://mcp.example.com", 200},
		{"listed origin with the default port", nil, []string{"https://app.example.com:443/"}, "localhost", "https://app.example.com", 200},
		{"listed origin with that of the other scheme", nil, []string{"http://app.example.com:443"}, "localhost", "http://app.example.com", 403},
		{"origin that names its default port", nil, []string{"http://app.example.com"}, "localhost", "http://app.example.com:80", 200},
		{"listed host with a default port", []string{"mcp.example.com:443"}, nil, "MCP.example.com", "", 200},
		{"listed host with another port", []string{"mcp.example.com:8443"}, nil, "mcp.example.com", "", 403},
		{"own origin where a proxy names the port", []string{"mcp.example.com"}, nil, "mcp.example.com:443", "https://mcp.example.com", 200},
		{"origin of another port of the host", []string{"mcp.example.com"}, nil, "mcp.example.com:8443", "https://mcp.example.com", 403},
		{"own origin under a wildcard proves nothing", []string{"*"}, nil, "evil.example", "http://evil.example", 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			_, p := serve(t, Options{AllowedHosts: tc.hosts, AllowedOrigins: tc.origins, Logger: zerolog.New(&log)}, newFake())
			r := p.request(http.MethodPost, initialize(mcp.V20251125))
			r.Host = tc.host
			if tc.origin != "" {
				r.Header.Set("Origin", tc.origin)
			}
			resp := p.do(r)
			want(t, "status", resp.StatusCode, tc.status)
			if tc.status != 200 {
				namesWhatIsRefused(t, text(t, resp), &log, tc.host, tc.origin)
			}
			if tc.origin == "" || tc.status != 200 {
				want(t, "CORS", resp.Header.Get("Access-Control-Allow-Origin"), "")
				return
			}
			want(t, "CORS origin", resp.Header.Get("Access-Control-Allow-Origin"), tc.origin)
			want(t, "CORS exposure", resp.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id, WWW-Authenticate")
			want(t, "Vary", resp.Header.Get("Vary"), "Origin")
		})
	}
}

// namesWhatIsRefused checks that client and log are told which host or origin is not allowed, and which setting says so.
func namesWhatIsRefused(t *testing.T, answer string, log *bytes.Buffer, host, origin string) {
	t.Helper()
	what, named := "host", host
	if origin != "" {
		what, named = "origin", origin
	}
	want(t, "answer", answer, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"`+what+" "+named+" is not allowed; see the setting allowed-"+what+`s","data":{"bridge":{}}}}`)
	if line := log.String(); !strings.Contains(line, `"level":"info","`+what+`":"`+named+`"`) || !strings.Contains(line, "allowed-"+what+"s") {
		t.Errorf("the log says %s", line)
	}
}

func TestWhatIsRefusedIsBoundedAndPrintable_E11(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	r := p.request(http.MethodPost, initialize(mcp.V20251125))
	r.Header.Set("Origin", "http://"+strings.Repeat("x", 500)+"\u202e")
	answer := text(t, p.do(r))
	if len(answer) > 400 || strings.Contains(answer, "\u202e") || !strings.Contains(answer, "allowed-origins") {
		t.Errorf("it says %s", answer)
	}
}

func TestPreflightAllowsWhatThePageWantsToSend(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	r := p.request(http.MethodOptions, "")
	r.Header.Set("Origin", "http://localhost:3000")
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "content-type,mcp-session-id,mcp-param-region")
	resp := p.do(r)
	want(t, "status", resp.StatusCode, 204)
	want(t, "origin", resp.Header.Get("Access-Control-Allow-Origin"), "http://localhost:3000")
	want(t, "headers", resp.Header.Get("Access-Control-Allow-Headers"), "content-type,mcp-session-id,mcp-param-region")
	want(t, "methods", resp.Header.Get("Access-Control-Allow-Methods"), "GET, POST, DELETE, OPTIONS")
	r = p.request(http.MethodOptions, "")
	r.Header.Set("Origin", "https://evil.example")
	want(t, "foreign origin", p.do(r).StatusCode, 403)
}

// A page needs no Origin to have a request sent whose answer it cannot read: browsers
// tell what sent it all the same.
func TestARequestOfAForeignPageWithoutOriginIsRefused_E11(t *testing.T) {
	for _, tc := range []struct {
		name    string
		origins []string
		site    []string
		origin  string
		status  int
	}{
		{"another site", nil, []string{"cross-site"}, "", 403},
		{"another port or subdomain", nil, []string{"same-site"}, "", 403},
		{"a word of the future", nil, []string{"other"}, "", 403},
		{"two words", nil, []string{"none", "cross-site"}, "", 403},
		{"its own page", nil, []string{"same-origin"}, "", 200},
		{"a person", nil, []string{"none"}, "", 200},
		{"no browser", nil, nil, "", 200},
		{"an allowed origin", []string{"https://app.example.com"}, []string{"cross-site"}, "https://app.example.com", 200},
		{"a page of that origin that does not say so", []string{"https://app.example.com"}, []string{"cross-site"}, "", 403},
		{"a page on this machine", nil, []string{"same-site"}, "http://localhost:3000", 200},
		{"another site that says its origin", nil, []string{"cross-site"}, "https://evil.example", 403},
		{"any page", []string{"*"}, []string{"cross-site"}, "", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, p := serveAll(t, Options{AllowedOrigins: tc.origins}, newFake())
			stream, call := p.request(http.MethodGet, ""), p.request(http.MethodPost, initialize(mcp.V20251125))
			stream.URL.Path, call.URL.Path = "/sse", "/mcp"
			for _, r := range []*http.Request{stream, call} {
				r.Header["Sec-Fetch-Site"] = tc.site
				if tc.origin != "" {
					r.Header.Set("Origin", tc.origin)
				}
				want(t, "status of "+r.Method, p.do(r).StatusCode, tc.status)
			}
		})
	}
}
