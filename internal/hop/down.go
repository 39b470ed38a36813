package hop

import (
	"net/http"
	"strings"
)

// downward lists the fields of a server's response that its client gets: what MCP, its
// authorization and HTTP itself say to programs. A name that ends in a hyphen stands for all
// that begin with it. What is not listed acts on browsers (a cookie, a redirect, a policy, the
// scope of a service worker), and there on the origin of the bridge, which all servers behind
// it share; or it belongs to a connection. Nobody can list all of that.
var downward = map[string]bool{
	"Age": true, "Allow": true, "Cache-Control": true, "Content-Encoding": true, "Content-Language": true, "Content-Length": true,
	"Content-Type": true, "Date": true, "Etag": true, "Expires": true, "Last-Modified": true, "Pragma": true, "Retry-After": true,
	"Server": true, "Vary": true, "Via": true, "Warning": true, "Www-Authenticate": true,

	// Of the protocol.
	"Mcp-": true,

	// Of whoever looks for a fault, and of whoever counts requests.
	"Baggage": true, "Cf-Ray": true, "Correlation-Id": true, "Ratelimit": true, "Ratelimit-": true, "Request-Id": true,
	"Server-Timing": true, "Traceparent": true, "Traceresponse": true, "Tracestate": true,

	// Of the body, which is the server's own.
	"Content-Digest": true, "Digest": true, "Repr-Digest": true, "Signature": true, "Signature-Input": true,

	// Of the server's own making, but for what commands the proxy before the bridge, or a
	// browser.
	"X-": true, "X-Accel-": false, "X-Accel-Buffering": true, "X-Content-": false, "X-Dns-Prefetch-Control": false,
	"X-Lighttpd-": false, "X-Litespeed-": false, "X-Reproxy-": false, "X-Sendfile": false, "X-Sendfile-": false, "X-Sourcemap": false,
}

// goesDown reports whether a field of a response reaches the client: as it is listed, or by
// the longest beginning that is.
func goesDown(name string) bool {
	for at := len(name); at > 0; at = strings.LastIndexByte(name[:at-1], '-') + 1 {
		if goes, listed := downward[name[:at]]; listed {
			return goes
		}
	}
	return false
}

// Down edits the head of a response that is passed on: which fields cross, and what a
// browser makes of the body. Clients of the bridge are programs, but anybody may open its
// address, and what a browser then shows is on the bridge's origin: what is neither JSON nor
// a stream becomes text there, which runs nothing.
func Down(resp *http.Response) {
	h := resp.Header
	connection := h["Connection"]
	for name := range h {
		if !goesDown(name) || named(connection, name) {
			delete(h, name)
		}
	}
	Inert(h, resp.ContentLength != 0)
}

// sandbox is the policy of what is neither JSON nor a stream.
const sandbox = "default-src 'none'; sandbox; frame-ancestors 'none'"

// Inert makes of the head of a server's response one that no browser runs anything of.
// Programs get the same body.
func Inert(h http.Header, body bool) {
	h["X-Content-Type-Options"] = []string{"nosniff"}
	kind := h["Content-Type"]
	switch {
	case len(kind) == 0 && !body:
	case len(kind) > 0 && forPrograms(kind[0]):
		h["Content-Type"] = kind[:1]
	default:
		h["Content-Type"] = []string{"text/plain"}
		h["Content-Security-Policy"] = []string{sandbox}
	}
}

// forPrograms reports whether a Content-Type says, in the one reading that there is of it,
// that the body is JSON or a stream of events.
func forPrograms(value string) bool {
	kind, _, _ := strings.Cut(value, ";")
	switch strings.ToLower(strings.Trim(kind, " \t")) {
	case "application/json", "application/problem+json", "text/event-stream":
		return !strings.Contains(value, ",") // browsers read the last of several
	}
	return false
}

// Opened reports whether a request is a browser's for something to show or to run: a page
// that somebody opens, a frame, a script, a worker. Those of MCP are none, of a page either.
func Opened(r *http.Request) bool {
	for _, mode := range r.Header["Sec-Fetch-Mode"] {
		if mode == "navigate" {
			return true
		}
	}
	for _, dest := range r.Header["Sec-Fetch-Dest"] {
		if dest != "empty" {
			return true
		}
	}
	return len(r.Header["Service-Worker"]) > 0
}

// RefuseOpened answers a request that is Opened.
func RefuseOpened(w http.ResponseWriter) {
	http.Error(w, "this is the address of an MCP server: give it to an MCP client, a browser has nothing to show here", http.StatusForbidden)
}
