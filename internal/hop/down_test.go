package hop

import (
	"net/http"
	"testing"
)

// The expectations are written out once more: a field that crosses by accident is an attack
// that becomes possible.
func TestEachFieldOfAResponse(t *testing.T) {
	goes := []string{
		"Age", "Allow", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Length", "Date", "Etag", "Expires",
		"Last-Modified", "Pragma", "Retry-After", "Server", "Vary", "Via", "Warning", "Www-Authenticate",
		"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Anything",
		"Baggage", "Cf-Ray", "Correlation-Id", "Ratelimit", "Ratelimit-Policy", "Request-Id", "Server-Timing", "Traceparent", "Traceresponse", "Tracestate",
		"Content-Digest", "Digest", "Repr-Digest", "Signature", "Signature-Input",
		"X-Request-Id", "X-Ratelimit-Remaining", "X-Tenant", "X-Forwarded-For", "X-Accel-Buffering", "X-Frame-Options",
	}
	stays := []string{
		// What belongs to a connection.
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		// What a browser keeps for the origin.
		"Set-Cookie", "Set-Cookie2", "Clear-Site-Data", "Strict-Transport-Security", "Public-Key-Pins", "Expect-Ct", "Alt-Svc", "Alt-Used", "Nel", "Report-To",
		"Reporting-Endpoints", "Accept-Ch", "Critical-Ch", "Origin-Agent-Cluster", "Use-As-Dictionary", "Service-Worker-Allowed", "Sec-Session-Registration",
		"Set-Login", "Origin-Trial", "Activate-Storage-Access", "Shared-Storage-Write", "Attribution-Reporting-Register-Source", "Observe-Browsing-Topics",
		// Where it leads, and what it loads.
		"Location", "Content-Location", "Refresh", "Link", "Sourcemap", "X-Sourcemap", "Speculation-Rules", "X-Dns-Prefetch-Control", "Content-Disposition",
		// What a page may: the bridge has answered that.
		"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Timing-Allow-Origin", "Cross-Origin-Opener-Policy",
		"Cross-Origin-Embedder-Policy", "Cross-Origin-Resource-Policy", "Content-Security-Policy", "Content-Security-Policy-Report-Only", "Permissions-Policy",
		"Document-Policy", "Feature-Policy", "Referrer-Policy", "X-Content-Security-Policy",
		// What proxies before the bridge obey.
		"X-Accel-Redirect", "X-Accel-Expires", "X-Sendfile", "X-Sendfile-Type", "X-Lighttpd-Send-File", "X-Litespeed-Location", "X-Reproxy-Url",
		// What nobody has heard of, and other spellings.
		"Future-Policy", "Mcp", "Xtenant", "set-cookie", "Set_cookie", "x_tenant", "",
	}
	for want, names := range map[bool][]string{true: goes, false: stays} {
		for _, name := range names {
			resp := &http.Response{Header: http.Header{name: {"v"}}}
			Down(resp)
			if got := len(resp.Header[name]) > 0; got != want {
				t.Errorf("%s goes down: %v", name, got)
			}
		}
	}
	tested := map[string]bool{"Content-Type": true}
	for _, name := range append(goes, stays...) {
		tested[name] = true
		for i := range name {
			if name[i] == '-' {
				tested[name[:i+1]] = true
			}
		}
	}
	for name := range downward {
		if !tested[name] {
			t.Errorf("%s has no expectation", name)
		}
	}
}
