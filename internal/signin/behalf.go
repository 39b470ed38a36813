package signin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// Behalf says that clients' tokens end here, and how the bridge acts on their behalf at the
// server: with what is configured as a header, if anything, or with a token of each
// one's own. Account does it with an account of the bridge's.
type Behalf struct {
	Exchange *authorize.Exchanger // nil: nothing is exchanged; closed by whoever made it
}

// Caller returns next with these credentials.
func (b *Behalf) Caller(next upstream.Caller) upstream.Caller { return &onBehalf{next, b} }

// Transport does the same for requests that are handed on as they are.
func (b *Behalf) Transport(base http.RoundTripper) http.RoundTripper {
	return &onBehalfTransport{base, b}
}

// onBehalf is a Caller that sends the bridge's credentials in the place of a client's. To
// that the server's refusal of these says nothing about its own.
type onBehalf struct {
	upstream.Caller
	*Behalf
}

var _ upstream.Signer = (*onBehalf)(nil)

// Unwrap implements upstream.Wrapper.
func (a *onBehalf) Unwrap() upstream.Caller { return a.Caller }

// Sign implements upstream.Signer.
func (a *onBehalf) Sign(ctx context.Context, call *upstream.Call) (*upstream.Call, error) {
	header, err := a.header(ctx, call.Authorization)
	return with(call, header), err
}

// Do implements upstream.Caller. What a server refuses it has not executed, so it is
// sent again with a new token, once.
func (a *onBehalf) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (answer *upstream.Answer, err error) {
	err = a.twice(ctx, call, func(own *upstream.Call) (err error) {
		answer, err = a.Caller.Do(ctx, own, notify)
		return err
	})
	return answer, err
}

// Listen implements upstream.Caller.
func (a *onBehalf) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	return a.twice(ctx, call, func(own *upstream.Call) error { return a.Caller.Listen(ctx, own, notify) })
}

func (a *onBehalf) twice(ctx context.Context, call *upstream.Call, send func(*upstream.Call) error) error {
	for again := true; ; again = false {
		header, err := a.header(ctx, call.Authorization)
		if err != nil {
			return signInFailure(ctx, err)
		}
		err = send(with(call, header))
		refused, ok := refusedCredentials(err, header)
		switch {
		case !ok || call.Authorization == "" && a.Exchange != nil: // nobody is behind the request
			return err
		case again && a.renewable(refused.Status):
			a.Exchange.Forget(call.Authorization)
			continue
		}
		return signInFailure(ctx, refusedOurs(refused.Status))
	}
}

// header returns the credentials for a request of a client with its own.
func (b *Behalf) header(ctx context.Context, client string) (string, error) {
	if b.Exchange == nil {
		return "", nil
	}
	return b.Exchange.Authorization(ctx, client)
}

// renewable reports whether another token could help.
func (b *Behalf) renewable(status int) bool {
	return b.Exchange != nil && status == http.StatusUnauthorized
}

func refusedOurs(status int) error {
	if status == http.StatusForbidden {
		return fmt.Errorf("the server does not allow this with the credentials that the bridge has for it (HTTP 403)")
	}
	return fmt.Errorf("the server refuses the credentials that the bridge has for it (HTTP %d); whoever runs the bridge should look at headers and auth", status)
}

// onBehalfTransport does the same for requests that are handed on as they are.
type onBehalfTransport struct {
	base http.RoundTripper
	*Behalf
}

// RoundTrip implements http.RoundTripper.
func (a *onBehalfTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.Exchange == nil {
		return a.once(r)
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	client := r.Header.Get("Authorization")
	for again := true; ; again = false {
		header, err := a.header(r.Context(), client)
		if err != nil {
			return unsigned(r, body, err), nil
		}
		resp, err := a.base.RoundTrip(signed(r, body, header))
		switch {
		case err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden:
			return resp, err
		case again && a.renewable(resp.StatusCode):
			_ = resp.Body.Close() // nobody wants to know what it says
			a.Exchange.Forget(client)
			continue
		}
		_ = resp.Body.Close() // as above
		return unsigned(r, body, refusedOurs(resp.StatusCode)), nil
	}
}

// once sends a request whose credentials are there already.
func (a *onBehalfTransport) once(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	resp, err := a.base.RoundTrip(withText(r, body))
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	_ = resp.Body.Close() // nobody wants to know what it says
	return unsigned(r, body, refusedOurs(resp.StatusCode)), nil
}
