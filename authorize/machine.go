package authorize

import (
	"context"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpbridge/bridge/internal/smallfile"
)

// asMachine signs in with the bridge's own account (SEP-1046).
func (a *Agent) asMachine(ctx context.Context, at *place, scopes []string) (*Login, error) {
	c, ok := a.configured(at.meta)
	if !ok || c.Method == methodNone {
		return nil, failf(nil, "auth.grant client-credentials needs auth.client-id and either auth.client-secret or auth.client-key")
	}
	token, err := a.exchange(ctx, at.meta.TokenEndpoint, at.meta.Issuer, &c, grantMachine, url.Values{
		"scope": {strings.Join(scopes, " ")}, "resource": {a.parameter(at.resource)},
	})
	if err != nil {
		return nil, refusedToken(at.meta.Issuer, err)
	}
	return a.take(a.newLogin(at, &c, scopes), token)
}

// newLogin begins the login of an account that needs no person.
func (a *Agent) newLogin(at *place, c *client, scopes []string) Login {
	return Login{
		Resource: at.resource, Issuer: at.meta.Issuer, Requested: scopes, TokenEndpoint: at.meta.TokenEndpoint,
		Revocation: at.meta.RevocationEndpoint, secrets: secrets{Client: *c},
	}
}

// asEmployee exchanges what the company's identity provider says about the person
// for a token of the server's own authorization server (SEP-990).
func (a *Agent) asEmployee(ctx context.Context, at *place, scopes []string) (*Login, error) {
	c, ok := a.configured(at.meta)
	if !ok {
		return nil, failf(nil, "auth.grant enterprise needs auth.client-id, by which %s knows the bridge", hostOf(at.meta.Issuer))
	}
	grant, err := a.assertEmployee(ctx, at, scopes)
	if err != nil {
		return nil, err
	}
	token, err := a.exchange(ctx, at.meta.TokenEndpoint, at.meta.Issuer, &c, grantJWT, url.Values{
		"assertion": {grant}, "scope": {strings.Join(scopes, " ")}, "resource": {a.parameter(at.resource)},
	})
	if err != nil {
		return nil, refusedToken(at.meta.Issuer, err)
	}
	return a.take(a.newLogin(at, &c, scopes), token)
}

// assertEmployee gets the identity provider's word for the server (ID-JAG).
func (a *Agent) assertEmployee(ctx context.Context, at *place, scopes []string) (string, error) {
	idp := &a.opt.IDP
	identity, err := smallfile.SecretWithin(ctx, idp.TokenFile)
	if err != nil {
		return "", failf(err, "the ID token of auth.idp.token-file cannot be read: %v", err)
	}
	meta, err := a.issuer(ctx, idp.Issuer)
	if err != nil {
		return "", err
	}
	credentials := &oauthex.ClientCredentials{ClientID: idp.ClientID}
	if idp.ClientSecret != "" {
		credentials.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: idp.ClientSecret}
	}
	token, err := oauthex.ExchangeToken(ctx, meta.TokenEndpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, Audience: at.meta.Issuer, Resource: at.resource, Scope: scopes,
		SubjectToken: strings.TrimSpace(string(identity)), SubjectTokenType: oauthex.TokenTypeIDToken,
	}, credentials, a.through(a.opt.Issuers.Transport))
	if err != nil {
		if code := codeOf(err); code == "invalid_grant" {
			return "", failf(err, "%s does not accept the ID token of auth.idp.token-file; it may have expired", hostOf(idp.Issuer))
		}
		return "", refusedToken(idp.Issuer, err)
	}
	return token.AccessToken, nil
}
