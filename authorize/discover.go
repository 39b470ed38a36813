package authorize

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/wellknown"
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
	p, err := a.search(ctx, c)
	a.tell(StepDiscovery, err)
	return p, err
}

func (a *Agent) search(ctx context.Context, c *challenge) (*place, error) {
	if err := wellknown.Secure(a.opt.Server); err != nil {
		return nil, failf(err, "the bridge shows a login to servers by https only, and %s is connected to by http: anybody between could read it. Connect to its https address", a.opt.host())
	}
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
	p := &place{resource: resource.Resource, scopes: strings.Fields(clip.Printable(strings.Join(resource.ScopesSupported, " "))), meta: meta}
	if a.opt.Resource != "" && a.opt.Resource != OmitResource {
		p.resource = a.opt.Resource
	}
	return p, nil
}

// choose picks among the authorization servers of a resource one that there is a
// login of, else the first. Where the operator named one it is that or none.
func (a *Agent) choose(offered []string) (string, error) {
	if a.opt.Issuer != "" {
		if len(offered) > 0 && !slices.ContainsFunc(offered, func(one string) bool { return sameIssuer(one, a.opt.Issuer) }) {
			return "", a.foreign(offered)
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

// foreign words that a server names others than the issuer that the operator trusts.
func (a *Agent) foreign(offered []string) *Failure {
	named := clip.Line(strings.Join(offered, ", "))
	if a.opt.Grant == Exchange {
		return failf(nil, "%s takes no tokens of %s, to which alone clients' tokens may go; it names %s. If that is who should get them, set it as auth.issuer", a.opt.host(), a.opt.Issuer, named)
	}
	return failf(nil, "%s takes no tokens of auth.issuer %s; it names %s", a.opt.host(), a.opt.Issuer, named)
}

// sameIssuer compares issuers as metadata are compared, without a stroke at the end.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// resource reads the metadata of the server: where the challenge says, else at
// the well-known places. A place without metadata leads to the next; metadata
// that are wrong end the search, since an attacker would provide just these.
func (a *Agent) resource(ctx context.Context, named string) (*oauthex.ProtectedResourceMetadata, error) {
	for _, at := range wellknown.ResourcePlaces(named, a.opt.Server) {
		if err := wellknown.ResourcePlace(a.opt.Server, at); err != nil {
			return nil, failf(err, "%s says that its metadata are at an address that is not safe: %s", a.opt.host(), clip.Line(err.Error()))
		}
		var found oauthex.ProtectedResourceMetadata
		status, err := wellknown.Fetch(ctx, a.opt.Resources, at, &found)
		switch {
		case status >= 400 && status < 500:
			continue
		case err != nil:
			return nil, passing(err, "the sign-in metadata of %s cannot be read: %s", a.opt.host(), clip.Line(wellknown.Reason(err)))
		case found.Resource == "":
			return nil, failf(nil, "the sign-in metadata of %s do not say for which resource they are: the sign-in was stopped; its operator should know", a.opt.host())
		case !wellknown.Names(found.Resource, a.opt.Server):
			return nil, failf(nil, "%s says that it is %q: the sign-in was stopped, since a token for that name may be meant for somebody else. If you trust it, connect to that address instead", a.opt.host(), clip.Line(found.Resource))
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
	return &oauthex.ProtectedResourceMetadata{Resource: a.opt.Server, AuthorizationServers: []string{wellknown.Origin(a.opt.Server)}}
}

// issuer reads and judges the metadata of an authorization server.
func (a *Agent) issuer(ctx context.Context, issuer string) (*metadata, error) {
	if err := wellknown.From(a.opt.Server, issuer); err != nil && issuer != a.opt.Issuer && issuer != a.opt.IDP.Issuer {
		return nil, failf(err, "%s sends you to sign in at an address that is not safe: %s", a.opt.host(), clip.Line(err.Error()))
	}
	if clip.Printable(issuer) != issuer {
		return nil, failf(nil, "%s sends you to sign in at an address that is none: %s", a.opt.host(), clip.Line(issuer))
	}
	for _, at := range wellknown.IssuerPlaces(issuer) {
		read := a.readIssuer
		if !a.redirects() {
			read = a.readPlainIssuer
		}
		found, err := read(ctx, at, issuer)
		if err == nil && found != nil {
			err = found.validate(issuer)
		}
		if found != nil || err != nil {
			return found, err
		}
	}
	var none error
	if issuer == wellknown.Origin(a.opt.Server) {
		none = ErrNoSignIn
	}
	return nil, failf(none, "no authorization server answers at %s; the operator of %s should look at its metadata", clip.Line(issuer), a.opt.host())
}

// validate refuses metadata that lead to where nothing should be entrusted to, and makes
// the others fit for messages. It judges every address that the bridge ever asks or shows;
// of the others (keys, introspection, documentation) it makes no use.
func (m *metadata) validate(issuer string) error {
	if m.TokenEndpoint == "" {
		return failf(nil, "the authorization server %s has no safe token endpoint", hostOf(issuer))
	}
	for _, address := range []*string{&m.DeviceEndpoint, &m.RevocationEndpoint} { // which one can do without
		if wellknown.Secure(*address) != nil {
			*address = ""
		}
	}
	for _, address := range []*string{&m.AuthorizationEndpoint, &m.TokenEndpoint, &m.RegistrationEndpoint, &m.DeviceEndpoint, &m.RevocationEndpoint} {
		if err := wellknown.From(issuer, *address); err != nil {
			return failf(err, "the authorization server %s cannot be used: one of its addresses is not safe: %s", hostOf(issuer), clip.Line(err.Error()))
		}
		*address = plain(*address)
	}
	return nil
}

// readIssuer reads metadata that a browser is to be entrusted to; nil: there are none
// at this place.
func (a *Agent) readIssuer(ctx context.Context, at, issuer string) (*metadata, error) {
	seen := &witness{base: a.opt.Issuers.Transport, lists: a.opt.AssumePKCE}
	meta, err := oauthex.GetAuthServerMeta(ctx, at, issuer, a.through(seen))
	switch {
	case err != nil && (seen.status == 0 || seen.status >= 500):
		return nil, passing(err, "the authorization server %s cannot be asked: %s", hostOf(issuer), clip.Line(wellknown.Reason(err)))
	case err != nil:
		if seen.unlisted() != nil {
			return nil, unlistedPKCE(issuer)
		}
		return nil, failf(err, "the authorization server %s cannot be used: %s", hostOf(issuer), clip.Line(err.Error()))
	case meta == nil:
		return nil, nil
	}
	found := &metadata{AuthServerMeta: *meta}
	var more struct { // what oauthex does not know; the rest it has judged
		Device string `json:"device_authorization_endpoint"`
	}
	if wellknown.Decode(seen.body, &more) == nil {
		found.DeviceEndpoint = more.Device
	}
	if !slices.Contains(found.CodeChallengeMethodsSupported, "S256") {
		return nil, unlistedPKCE(issuer)
	}
	return found, nil
}

// unlistedPKCE words that metadata do not offer what keeps others from taking a sign-in.
func unlistedPKCE(issuer string) *Failure {
	return failf(nil, "the authorization server %s cannot be used: it does not say that it has PKCE with S256, which keeps others from taking your sign-in. If its documentation says that it has (Microsoft Entra and Amazon Cognito do), set auth.pkce to assumed", hostOf(issuer))
}

// readPlainIssuer reads metadata of an authorization server to which no browser is sent:
// it may be one for machines, which has neither a page nor PKCE.
func (a *Agent) readPlainIssuer(ctx context.Context, at, issuer string) (*metadata, error) {
	found := &metadata{}
	switch status, err := wellknown.Fetch(ctx, a.opt.Issuers, at, found); {
	case status >= 400 && status < 500:
		return nil, nil
	case err != nil:
		return nil, passing(err, "the authorization server %s cannot be asked: %s", hostOf(issuer), clip.Line(wellknown.Reason(err)))
	case found.Issuer != issuer:
		return nil, failf(nil, "the authorization server %s cannot be used: its metadata name another issuer, %s", hostOf(issuer), clip.Line(found.Issuer))
	case wellknown.Secure(found.TokenEndpoint) != nil:
		return nil, failf(nil, "the authorization server %s has no safe token endpoint", hostOf(issuer))
	}
	return found, nil
}

// redirects reports whether a browser may come back with a code.
func (a *Agent) redirects() bool { return a.opt.Grant == Auto || a.opt.Grant == Code }

// through returns the client for authorization servers, with another way to them.
func (a *Agent) through(way http.RoundTripper) *http.Client {
	client := *a.opt.Issuers
	client.Transport = way
	return &client
}

// witness notes what the response of a request was: oauthex tells neither the
// status nor the members that it does not know.
type witness struct {
	base   http.RoundTripper
	lists  bool // PKCE with S256 where nothing is said of it
	status int
	body   []byte
}

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	w.status = resp.StatusCode
	w.body, err = io.ReadAll(io.LimitReader(resp.Body, wellknown.MaxDocument))
	if document := w.unlisted(); w.lists && document != nil {
		document[pkceMember] = json.RawMessage(`["S256"]`)
		w.body, _ = json.Marshal(document) // of what was read as JSON
		resp.ContentLength = int64(len(w.body))
	}
	resp.Body = io.NopCloser(bytes.NewReader(w.body))
	return resp, err
}

const pkceMember = "code_challenge_methods_supported"

// unlisted returns a document that says nothing of PKCE, nil for any other.
func (w *witness) unlisted() (document map[string]json.RawMessage) {
	if w.status != http.StatusOK || wellknown.Decode(w.body, &document) != nil || document[pkceMember] != nil {
		return nil
	}
	return document
}
