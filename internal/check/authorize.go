package check

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/wellknown"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// authorize says what a server wants that did not answer for want of it. The
// bridge can use such a server, as clients bring their credentials, unless it has refused configured ones.
func (r *Report) authorize(ctx context.Context, server *streamable.Options, login, public string, failure *upstream.Failure) {
	if failure.Own { // which clients cannot replace
		r.Usable, r.Problem, r.Authorization = false, failure.Detail, fmt.Sprintf("refused (HTTP %d)", failure.Status)
		return
	}
	r.Usable, r.Problem = true, ""
	r.Authorization = fmt.Sprintf("wanted (HTTP %d); clients bring their own, check takes --headers 'Authorization: …'", failure.Status)
	r.Login = login
	if login == "" {
		r.Login = "none; with --auth.mode agent the bridge signs in for clients that cannot, when one needs it or by: bridge login " + server.URL
	}
	found := resource(ctx, server, failure.Challenge)
	r.Resource, r.Signing = printable(found), whoSigns(found, public)
}

// whoSigns says whether clients can sign in themselves (H-14): their tokens are for
// the address under which they know the bridge.
func whoSigns(resource, public string) string {
	const otherwise = "else the bridge signs in itself: --auth.mode agent or terminate"
	switch {
	case resource == "":
		return ""
	case public == "":
		return "clients sign in themselves (--auth.mode relay) where --public-url is that, or the server does not look for whom a token is; " + otherwise
	case wellknown.Names(resource, public):
		return "which is --public-url: clients sign in themselves (--auth.mode relay)"
	}
	return "which is not --public-url, for which clients' tokens would be: --auth.mode relay is right only if the server does not look for whom a token is; " + otherwise
}

// Bounds on reading a server's metadata.
const (
	metadataTimeout = 5 * time.Second
	metadataSize    = 64 << 10 // bytes
)

// resource returns for which resource a server accepts tokens, as its metadata
// say (RFC 9728), "" when that cannot be found out. Only the server itself is
// asked: a challenge must not send check anywhere else.
func resource(ctx context.Context, server *streamable.Options, challenges []string) string {
	named := ""
	if u, err := url.Parse(wellknown.Value(challenges, "resource_metadata")); err == nil && u.Path != "" {
		named = wellknown.Origin(server.URL) + u.RequestURI()
	}
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	for _, at := range wellknown.ResourcePlaces(named, server.URL) {
		if found := read(ctx, server, at); found != "" {
			return found
		}
	}
	return ""
}

// read returns the resource that a document names.
func read(ctx context.Context, server *streamable.Options, at string) string {
	resp, err := get(ctx, server, at, http.Header{})
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var document struct {
		Resource string `json:"resource"`
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, metadataSize))
	if err != nil || wellknown.Decode(text, &document) != nil {
		return ""
	}
	return document.Resource
}

// get asks a server for something, and follows no redirect. The connection ends
// with the body.
func get(ctx context.Context, server *streamable.Options, url string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	transport := http1.DefaultTransport()
	transport.DisableKeepAlives, transport.TLSClientConfig = true, server.TLS.Clone()
	if server.Dial != nil {
		transport.DialContext = server.Dial
	}
	return transport.RoundTrip(req) // not a Client, which would follow redirects
}
