package authorize

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// Grant types at the token endpoint.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
	grantMachine = "client_credentials"
	grantJWT     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// exchange makes a request to a token endpoint, and tells what came of it.
func (a *Agent) exchange(ctx context.Context, endpoint, issuer string, c *client, grant string, params url.Values) (*oauth2.Token, error) {
	token, err := a.request(ctx, endpoint, issuer, c, grant, params)
	a.tell(stepOf(grant), err)
	return token, err
}

// request makes a request to a token endpoint. The package that it uses is named after
// one grant, but makes the request of any.
func (a *Agent) request(ctx context.Context, endpoint, issuer string, c *client, grant string, params url.Values) (*oauth2.Token, error) {
	if err := wellknown.From(issuer, endpoint); err != nil || endpoint == "" {
		return nil, failf(err, "the authorization server %s has no safe token endpoint", hostOf(issuer))
	}
	values := url.Values{"grant_type": {grant}}
	for name, value := range params {
		if len(value) > 0 && value[0] != "" {
			values[name] = value
		}
	}
	if c.Method == methodKey {
		assertion, err := a.assertion(c.ID, issuer)
		if err != nil {
			return nil, err
		}
		values.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		values.Set("client_assertion", assertion)
	}
	request := clientcredentials.Config{
		ClientID: c.ID, TokenURL: endpoint, AuthStyle: c.style(), EndpointParams: values,
	}
	if c.Method != methodKey && c.Method != methodNone {
		request.ClientSecret = c.Secret
	}
	token, err := request.Token(a.speaking(ctx))
	if err != nil {
		return nil, silent(err, values, c.Secret)
	}
	if kind := token.Type(); kind != "Bearer" && grant != grantExchange {
		return nil, failf(nil, "the authorization server %s gave a token of type %s, which the bridge cannot use", hostOf(issuer), clip.Line(kind))
	}
	return token, nil
}

// silent takes what a refusal quotes of the request out of it: some authorization servers
// say which code or token they do not like.
func silent(err error, sent url.Values, secrets ...string) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return err
	}
	for _, name := range []string{"code", "code_verifier", "refresh_token", "device_code", "subject_token", "assertion", "client_assertion"} {
		secrets = append(secrets, sent.Get(name))
	}
	for _, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret)} {
			if form != "" {
				refused.ErrorCode = strings.ReplaceAll(refused.ErrorCode, form, "…")
				refused.ErrorDescription = strings.ReplaceAll(refused.ErrorDescription, form, "…")
			}
		}
	}
	return err
}

const grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// speaking gives x/oauth2 the client for authorization servers.
func (a *Agent) speaking(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, a.opt.Issuers)
}

// assertionLife is how long a proof of the client is good, in case it leaks.
const assertionLife = time.Minute

// assertion proves the client by its key (RFC 7523).
func (a *Agent) assertion(id, audience string) (string, error) {
	key, method, err := signingKey(a.opt.ClientKey)
	if err != nil {
		return "", failf(err, "auth.client-key cannot be used: %v", err)
	}
	now := time.Now()
	return jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: id, Subject: id, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(assertionLife)),
	}).SignedString(key)
}

// signingKey reads a private key, and says which signatures it makes.
func signingKey(text []byte) (crypto.Signer, jwt.SigningMethod, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, errors.New("it holds no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, errors.New("it is no private key in PKCS #8; `openssl pkcs8 -topk8 -nocrypt` makes one of others")
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		return key, jwt.SigningMethodRS256, nil
	case ed25519.PrivateKey:
		return key, jwt.SigningMethodEdDSA, nil
	case *ecdsa.PrivateKey:
		for _, method := range []*jwt.SigningMethodECDSA{jwt.SigningMethodES256, jwt.SigningMethodES384, jwt.SigningMethodES512} {
			if key.Curve.Params().BitSize == method.CurveBits {
				return key, method, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("a key of the kind %T is not supported", parsed)
}

// parameter returns the value of resource in requests, "" to leave it out.
func (a *Agent) parameter(resource string) string {
	if a.opt.Resource == OmitResource {
		return ""
	}
	return resource
}

// maxSent bounds a token, in bytes: no server takes headers of this size.
const maxSent = 64 << 10

// sendable reports whether a token can stand in a header.
func sendable(token string) bool {
	return len(token) <= maxSent && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// take makes a login out of a token that an authorization server gave. One that had expired by then is
// an error, beside the login as it would be.
func (a *Agent) take(l Login, token *oauth2.Token) (*Login, error) {
	now := time.Now().Round(0) // by the wall clock: the other one stops while a laptop sleeps
	l.Server, l.Updated = a.opt.Server, now
	l.Access = token.AccessToken
	if id, _ := token.Extra("id_token").(string); a.opt.IDToken {
		if id = cmp.Or(id, l.ID); id == "" {
			return nil, failf(nil, "the authorization server %s gave no ID token, which auth.token asks for; add openid to auth.scopes", hostOf(l.Issuer))
		}
		l.ID, l.Access = id, id
	}
	if !sendable(l.Access) {
		return nil, failf(nil, "the authorization server %s gave a token that cannot be sent to a server: it is too long, or no token at all; its operator should know", hostOf(l.Issuer))
	}
	l.Refresh = cmp.Or(token.RefreshToken, l.Refresh)
	if granted, _ := token.Extra("scope").(string); granted != "" {
		l.Granted = strings.Fields(clip.Printable(granted))
	} else {
		l.Granted = l.Requested
	}
	l.Active, l.Renews = true, l.Refresh != ""
	l.Expires, l.Renew = time.Time{}, time.Time{}
	if !token.Expiry.IsZero() {
		l.Expires = token.Expiry.Round(0)
		life := l.Expires.Sub(now)
		l.Renew = l.Expires.Add(-min(life/10, time.Minute))
		if life <= 0 {
			return &l, failf(errStillborn, "the authorization server %s gives tokens that have expired when they come (expires_in is %d); its operator should look at the lifetime of its tokens", hostOf(l.Issuer), int64(life.Round(time.Second)/time.Second))
		}
	}
	return &l, nil
}
