package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/upstream"
)

// authorize says what a server wants that did not answer for want of it. The
// bridge can use such a server: clients bring their credentials.
func (r *Report) authorize(ctx context.Context, server *upstream.HTTPOptions, login string, failure *upstream.Failure) {
	r.Usable, r.Problem = true, ""
	r.Authorization = fmt.Sprintf("wanted (HTTP %d); clients bring their own, check takes --headers 'Authorization: …'", failure.Status)
	r.Login = login
	if login == "" {
		r.Login = "none; with --auth.mode agent the bridge signs in for clients that cannot, when one needs it or by: bridge login " + server.URL
	}
	for _, challenge := range failure.Challenge {
		if metadata := parameter(challenge, "resource_metadata"); metadata != "" {
			r.Resource = printable(resource(ctx, server, metadata))
		}
	}
}

// parameter returns one parameter of a challenge (RFC 9110, 11.6.1), "" without it.
func parameter(challenge, name string) string {
	_, rest, ok := strings.Cut(challenge, name+"=")
	if !ok {
		return ""
	}
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		value, _, _ := strings.Cut(quoted, `"`)
		return value
	}
	end := strings.IndexAny(rest, ", ")
	if end < 0 {
		end = len(rest)
	}
	return rest[:end]
}

// Bounds on reading a server's metadata.
const (
	metadataTimeout = 5 * time.Second
	metadataSize    = 64 << 10 // bytes
)

// resource returns for which resource a server accepts tokens, as its metadata
// says (RFC 9728), "" when that cannot be found out. Only the server itself is
// asked: a challenge must not send check anywhere else.
func resource(ctx context.Context, server *upstream.HTTPOptions, metadata string) string {
	at, err := url.Parse(metadata)
	own, err2 := url.Parse(server.URL)
	if err != nil || err2 != nil || at.Scheme != own.Scheme || at.Host != own.Host {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	resp, err := get(ctx, server, at.String(), http.Header{})
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var document struct{ Resource string }
	if json.NewDecoder(io.LimitReader(resp.Body, metadataSize)).Decode(&document) != nil {
		return ""
	}
	return document.Resource
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
