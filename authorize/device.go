package authorize

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// leadDevice has the person type a code in on another device (RFC 8628), with the
// lock held.
func (t *attempt) leadDevice(ctx context.Context, at *place) error {
	a := t.agent
	if at.meta.DeviceEndpoint == "" {
		return failf(nil, "%s has no sign-in by code; run `bridge login --paste %s` on this machine instead", hostOf(at.meta.Issuer), Shown(a.opt.Server))
	}
	c, err := a.client(ctx, at, a.opt.callbacks())
	if err != nil {
		return err
	}
	scopes := t.scopes(at)
	request := oauth2.Config{ClientID: c.ID, ClientSecret: c.Secret, Scopes: scopes, Endpoint: oauth2.Endpoint{
		DeviceAuthURL: at.meta.DeviceEndpoint, TokenURL: at.meta.TokenEndpoint, AuthStyle: c.style(),
	}}
	var options []oauth2.AuthCodeOption
	if resource := a.parameter(at.resource); resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", resource))
	}
	code, err := request.DeviceAuth(a.speaking(ctx), options...)
	if err != nil {
		return refusedToken(at.meta.Issuer, silent(err, nil, c.Secret))
	}
	if err := wellknown.From(at.meta.Issuer, code.VerificationURI); err != nil {
		return failf(err, "%s names an address to sign in at that is not safe: %s", hostOf(at.meta.Issuer), clip.Line(err.Error()))
	}
	code.VerificationURI = plain(code.VerificationURI)
	code.Interval = max(0, min(code.Interval, int64(signInLife/time.Second))) // 0 is the protocol's own
	t.show(Pending{URL: code.VerificationURI, Code: clip.Line(code.UserCode)})
	a.opt.Log.Warn().Str("url", code.VerificationURI).Str("code", clip.Line(code.UserCode)).Msg("sign in: open this address on any device and enter the code")
	token, err := entered(a.speaking(ctx), &request, code, options)
	a.tell(StepToken, err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), codeOf(err) == "expired_token":
		return failf(errNobody, "nobody entered the code in time; try again when you are ready")
	case codeOf(err) == "access_denied":
		return failf(err, "the sign-in at %s was declined; try again if that was not meant", hostOf(at.meta.Issuer))
	case err != nil:
		return refusedToken(at.meta.Issuer, silent(err, nil, c.Secret, code.DeviceCode))
	}
	l, err := a.take(Login{
		Resource: at.resource, Issuer: at.meta.Issuer, Requested: scopes, TokenEndpoint: at.meta.TokenEndpoint, Revocation: at.meta.RevocationEndpoint,
		secrets: secrets{Client: c},
	}, token)
	if err != nil {
		return err
	}
	return a.finish(ctx, l)
}

// entered asks for the token until the person has entered the code. An authorization
// server that is away for a while is asked half as often and does not end the sign-in
// (RFC 8628, 3.5).
func entered(ctx context.Context, request *oauth2.Config, code *oauth2.DeviceAuthResponse, options []oauth2.AuthCodeOption) (*oauth2.Token, error) {
	for {
		token, err := request.DeviceAccessToken(ctx, code, options...)
		late := !code.Expiry.IsZero() && !time.Now().Before(code.Expiry)
		if err == nil || late || ctx.Err() != nil || !refusedToken("", err).Passing {
			return token, err
		}
		code.Interval = min(2*cmp.Or(code.Interval, 5), int64(signInLife/time.Second))
	}
}
