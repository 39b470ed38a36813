package mount

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// Acting says that clients' tokens end here, and how the bridge acts for them at the
// server: with what is configured as a header, if anything, or with a token of each
// one's own. SignIn does it with an account of the bridge's.
type Acting struct {
	Exchange *authorize.Exchanger // nil: nothing is exchanged; closed with the mount
}

// acting is a Caller that sends the bridge's credentials in the place of a client's. To
// that the server's refusal of these says nothing about its own.
type acting struct {
	upstream.Caller
	*Acting
}

var _ upstream.Signer = (*acting)(nil)

// Unwrap implements upstream.Wrapper.
func (a *acting) Unwrap() upstream.Caller { return a.Caller }

// Sign implements upstream.Signer.
func (a *acting) Sign(ctx context.Context, call *upstream.Call) (*upstream.Call, error) {
	header, err := a.header(ctx, call.Authorization)
	return with(call, header), err
}

// Do implements upstream.Caller. What a server refuses it has not executed, so it is
// sent again with a new token, once.
func (a *acting) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (answer *upstream.Answer, err error) {
	err = a.twice(ctx, call, func(own *upstream.Call) (err error) {
		answer, err = a.Caller.Do(ctx, own, notify)
		return err
	})
	return answer, err
}

// Listen implements upstream.Caller.
func (a *acting) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	return a.twice(ctx, call, func(own *upstream.Call) error { return a.Caller.Listen(ctx, own, notify) })
}

func (a *acting) twice(ctx context.Context, call *upstream.Call, send func(*upstream.Call) error) error {
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
func (a *Acting) header(ctx context.Context, client string) (string, error) {
	if a.Exchange == nil {
		return "", nil
	}
	return a.Exchange.Authorization(ctx, client)
}

// renewable reports whether another token could help.
func (a *Acting) renewable(status int) bool {
	return a.Exchange != nil && status == http.StatusUnauthorized
}

func refusedOurs(status int) error {
	if status == http.StatusForbidden {
		return fmt.Errorf("the server does not allow this with the credentials that the bridge has for it (HTTP 403)")
	}
	return fmt.Errorf("the server refuses the credentials that the bridge has for it (HTTP %d); whoever runs the bridge should look at headers and auth", status)
}

// actingTransport does the same for requests that are handed on as they are.
type actingTransport struct {
	base http.RoundTripper
	*Acting
}

// RoundTrip implements http.RoundTripper.
func (a *actingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
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
func (a *actingTransport) once(r *http.Request) (*http.Response, error) {
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

// admission is how clients' tokens are checked, if they are.
func admission(r *resource.Resource) func(*http.Request) *downstream.Refusal {
	return func(req *http.Request) *downstream.Refusal {
		refused := r.Admit(req)
		if refused == nil {
			return nil
		}
		out := &downstream.Refusal{Status: refused.Status, Body: jsonrpc.AppendError(nil, "", fault.Request(refused.Reason))}
		if refused.Challenge != "" {
			out.Challenge = []string{refused.Challenge}
		}
		return out
	}
}
