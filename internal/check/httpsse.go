package check

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream"
)

// Bounds on the first event of a stream of HTTP+SSE.
const (
	eventTimeout = 5 * time.Second
	eventSize    = 16 << 10 // bytes
)

// onlyHTTPSSE reports a server of HTTP+SSE, the transport of 2024-11-05: the first
// event of its stream names the endpoint to which clients post.
func onlyHTTPSSE(ctx context.Context, server *upstream.HTTPOptions) bool {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	header := http.Header{}
	maps.Copy(header, server.Header)
	header.Set("Accept", "text/event-stream")
	resp, err := get(ctx, server, server.URL, header)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return false
	}
	event, err := sse.NewDecoder(io.LimitReader(resp.Body, eventSize), eventSize).Next()
	return err == nil && event.Type == "endpoint"
}

// get asks a server for something, and follows no redirect. The connection ends
// with the body.
func get(ctx context.Context, server *upstream.HTTPOptions, url string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	transport.TLSClientConfig = server.TLS.Clone()
	if server.Dial != nil {
		transport.DialContext = server.Dial
	}
	return transport.RoundTrip(req) // not a Client, which would follow redirects
}
