package authorize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// place is where tokens for a server come from.
type place struct {
	resource string // identifier of the server
	scopes   []string
	meta     *metadata
}

// metadata is what an authorization server says of itself.
type metadata struct {
	oauthex.AuthServerMeta
	DeviceEndpoint string `json:"device_authorization_endpoint"`
}

// locate finds the authorization server that a refusal leads to (RFC 9728, RFC 8414).
func (a *Agent) locate(ctx context.Context, c *challenge) (*place, error) {
	resource, err := a.resource(ctx, c.metadata)
	if err != nil {
		return nil, err
	}
	issuer, err := a.choose(resource.AuthorizationServers)
	if err != nil {
		return nil, err
	}
	meta, err := a.issuer(ctx, issuer)
	if err != nil {
		return nil, err
	}
	p := &place{resource: resource.Resource, scopes: resource.ScopesSupported, meta: meta}
	if a.opt.Resource != "" && a.opt.Resource != OmitResource {
		p.resource = a.opt.Resource
	}
	return p, nil
}

// choose picks among the authorization servers of a resource one that there is a
// login of, else the first.
func (a *Agent) choose(offered []string) (string, error) {
	if a.opt.Issuer != "" {
		if len(offered) > 0 && !slices.Contains(offered, a.opt.Issuer) {
			return "", failf(nil, "%s takes no tokens of auth.issuer %s; it names %s", a.opt.host(), a.opt.Issuer, clip(strings.Join(offered, ", ")))
		}
		return a.opt.Issuer, nil
	}
	if l := a.login.Load(); l != nil && slices.Contains(offered, l.Issuer) {
		return l.Issuer, nil
	}
	if len(offered) == 0 {
		return "", failf(nil, "%s wants a sign-in, but names no authorization server; its operator can tell you one to set as auth.issuer", a.opt.host())
	}
	return offered[0], nil
}

// resource reads the metadata of the server: where the challenge says, else at
// the well-known places. A place without metadata leads to the next; metadata
// that are wrong end the search, since an attacker would provide just these.
func (a *Agent) resource(ctx context.Context, named string) (*oauthex.ProtectedResourceMetadata, error) {
	for _, at := range resourcePlaces(named, a.opt.Server) {
		if err := secure(at); err != nil {
			return nil, failf(err, "%s says that its metadata are at an address that is not safe: %v", a.opt.host(), err)
		}
		var found oauthex.ProtectedResourceMetadata
		status, err := fetch(ctx, a.opt.Resources, at, &found)
		switch {
		case status >= 400 && status < 500:
			continue
		case err != nil:
			return nil, passing(err, "the sign-in metadata of %s cannot be read: %s", a.opt.host(), clip(reason(err)))
		case !names(found.Resource, a.opt.Server):
			return nil, failf(nil, "%s says that it is %q: the sign-in was stopped, since a token for that name may be meant for somebody else. If you trust it, connect to that address instead", a.opt.host(), clip(found.Resource))
		}
		return &found, nil
	}
	if a.opt.Issuer != "" {
		return &oauthex.ProtectedResourceMetadata{Resource: a.opt.Server}, nil
	}
	return a.rootIssuer(), nil
}

// rootIssuer is what servers of 2025-03-26 mean, which have no metadata: they are
// their own authorization server, at their root.
func (a *Agent) rootIssuer() *oauthex.ProtectedResourceMetadata {
	u, err := url.Parse(a.opt.Server)
	if err != nil {
		return &oauthex.ProtectedResourceMetadata{}
	}
	return &oauthex.ProtectedResourceMetadata{Resource: a.opt.Server, AuthorizationServers: []string{u.Scheme + "://" + u.Host}}
}

// names reports whether an identifier is the server's: its URL, or one above it
// on the same origin, which many servers use (RFC 9728, 3.3, and 8707, 2).
func names(identifier, server string) bool {
	if identifier == server {
		return true
	}
	i, err := url.Parse(identifier)
	s, err2 := url.Parse(server)
	if err != nil || err2 != nil || i.Scheme != s.Scheme || i.Host != s.Host || i.RawQuery != "" {
		return false
	}
	above := strings.TrimSuffix(i.Path, "/")
	return s.Path == above || strings.HasPrefix(s.Path, above+"/")
}

// resourcePlaces lists where the metadata of a server may be.
func resourcePlaces(named, server string) []string {
	u, err := url.Parse(server)
	if err != nil {
		return nil
	}
	root := u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource"
	var at []string
	if named != "" {
		at = append(at, named)
	}
	if p := strings.TrimSuffix(u.EscapedPath(), "/"); p != "" {
		at = append(at, root+p)
	}
	return append(at, root)
}

// issuer reads and judges the metadata of an authorization server.
func (a *Agent) issuer(ctx context.Context, issuer string) (*metadata, error) {
	for _, at := range issuerPlaces(issuer) {
		seen := &witness{base: a.opt.Issuers.Transport}
		meta, err := oauthex.GetAuthServerMeta(ctx, at, issuer, &http.Client{Transport: seen, Timeout: RequestTimeout})
		if err != nil {
			if seen.status == 0 || seen.status >= 500 {
				return nil, passing(err, "the authorization server %s cannot be asked: %s", hostOf(issuer), clip(reason(err)))
			}
			return nil, failf(err, "the authorization server %s cannot be used: %s", hostOf(issuer), clip(err.Error()))
		}
		if meta == nil {
			continue
		}
		found := &metadata{AuthServerMeta: *meta}
		if json.Unmarshal(seen.body, found) != nil || secure(found.DeviceEndpoint) != nil {
			found.DeviceEndpoint = ""
		}
		if !slices.Contains(found.CodeChallengeMethodsSupported, "S256") {
			return nil, failf(nil, "the authorization server %s cannot be used: it does not offer PKCE with S256, which keeps others from taking your sign-in", hostOf(issuer))
		}
		return found, nil
	}
	return nil, failf(nil, "no authorization server answers at %s; the operator of %s should look at its metadata", clip(issuer), a.opt.host())
}

// issuerPlaces lists where the metadata of an issuer may be, in the protocol's order.
func issuerPlaces(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return []string{origin + "/.well-known/oauth-authorization-server", origin + "/.well-known/openid-configuration"}
	}
	return []string{
		origin + "/.well-known/oauth-authorization-server/" + path,
		origin + "/.well-known/openid-configuration/" + path,
		origin + "/" + path + "/.well-known/openid-configuration",
	}
}

// secure refuses addresses to which nothing should be entrusted: plain http is
// only for this machine. Empty is no address.
func secure(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is no URL")
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s is not https", clip(u.Scheme+"://"+u.Host))
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// maxDocument bounds a metadata document, in bytes.
const maxDocument = 1 << 20

// fetch reads a JSON document. The status is 0 when there was no response.
func fetch(ctx context.Context, client *http.Client, at string, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(into); err != nil {
		return resp.StatusCode, errors.New("it is no JSON document")
	}
	return resp.StatusCode, nil
}

// witness notes what the response of a request was: oauthex tells neither the
// status nor the members that it does not know.
type witness struct {
	base   http.RoundTripper
	status int
	body   []byte
}

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	base := w.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	w.status = resp.StatusCode
	w.body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	resp.Body = io.NopCloser(bytes.NewReader(w.body))
	return resp, err
}

// reason is the innermost text of an error of a connection, without the URL,
// whose query may be nobody's business.
func reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error()
	}
	return err.Error()
}
