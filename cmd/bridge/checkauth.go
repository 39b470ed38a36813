package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// refusal returns the failure of a server that wants authorization, else nil.
func refusal(v *negotiate.Verdict) *upstream.Failure {
	failure, ok := errors.AsType[*upstream.Failure](v.Err)
	if !ok || failure.Cause != upstream.Unauthorized {
		return nil
	}
	return failure
}

// authorize says what a server wants that did not answer for want of it. The
// bridge can use such a server: clients bring their credentials.
func (r *report) authorize(ctx context.Context, m *config.Mount, failure *upstream.Failure) {
	r.Usable, r.Problem = true, ""
	r.Authorization = fmt.Sprintf("wanted (HTTP %d); clients bring their own, check takes --headers 'Authorization: …'", failure.Status)
	for _, challenge := range failure.Challenge {
		if metadata := parameter(challenge, "resource_metadata"); metadata != "" {
			r.Resource = printable(resource(ctx, m, metadata))
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
func resource(ctx context.Context, m *config.Mount, metadata string) string {
	at, err := url.Parse(metadata)
	server, err2 := url.Parse(m.Upstream)
	if err != nil || err2 != nil || at.Scheme != server.Scheme || at.Host != server.Host {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return ""
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	if transport.TLSClientConfig, err = clientTLS(&m.UpstreamTLS); err != nil {
		return ""
	}
	if dial := dialer(m); dial != nil {
		transport.DialContext = dial
	}
	resp, err := transport.RoundTrip(req) // not a Client, which would follow redirects
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
