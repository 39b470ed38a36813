package signin

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// Transport signs requests that are handed on as they are.
func (a *Account) Transport(base http.RoundTripper) http.RoundTripper {
	return &signingTransport{base, *a}
}

// signingTransport is signing for them.
type signingTransport struct {
	base http.RoundTripper
	Account
}

// RoundTrip implements http.RoundTripper.
func (s *signingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(r.Context(), s.Wait)
	defer cancel()
	for tries := 0; ; tries++ {
		header, err := s.Agent.Authorization(waiting)
		if err != nil {
			return unsigned(r, body, err), nil
		}
		resp, err := s.base.RoundTrip(signed(r, body, header))
		if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		refused := authorize.Refusal{Authorization: header, Status: resp.StatusCode, Challenge: resp.Header.Values("WWW-Authenticate")}
		_ = resp.Body.Close() // nobody wants to know what it says
		if tries == maxSignIns {
			return unsigned(r, body, errTooOften), nil
		}
		if err := s.renew(waiting, r, refused); err != nil {
			return unsigned(r, body, err), nil
		}
	}
}

// renew asks a person only on behalf of requests that somebody waits for.
func (s *signingTransport) renew(ctx context.Context, r *http.Request, refused authorize.Refusal) error {
	if r.Method == http.MethodPost {
		return s.Agent.Renew(ctx, refused)
	}
	return s.Agent.Quietly(ctx, refused)
}

// bodyOf reads a request's body.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body) // it was bounded where it came in
	_ = r.Body.Close()              // it is read
	return body, err
}

// withText returns a request with a body that was read.
func withText(r *http.Request, body []byte) *http.Request {
	own := r.Clone(r.Context())
	if r.Body != nil {
		own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return own
}

// signed returns a request with credentials.
func signed(r *http.Request, body []byte, header string) *http.Request {
	own := withText(r, body)
	own.Header.Del("Authorization")
	if header != "" {
		own.Header.Set("Authorization", header)
	}
	return own
}

// unsigned is the response to a request that could not be signed. The server's own
// would have the client sign in, which has nothing to sign in with.
func unsigned(r *http.Request, body []byte, err error) *http.Response {
	resp := &http.Response{StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r, Body: http.NoBody}
	msg, broken := jsonrpc.Parse(body)
	if r.Method != http.MethodPost || broken != nil {
		return resp // a stream that is not to be had yet
	}
	resp.StatusCode = http.StatusAccepted
	switch msg.Kind() {
	case jsonrpc.Response: // what somebody has answered is not done with
		resp.StatusCode = http.StatusServiceUnavailable
		resp.Header.Set("Retry-After", "1")
	case jsonrpc.Request:
		text := jsonrpc.AppendError(nil, msg.ID, fault.Uncut(jsonrpc.CodeInternal, err.Error(), fault.Reason(upstream.SignIn.String())))
		resp.StatusCode, resp.ContentLength, resp.Body = http.StatusOK, int64(len(text)), io.NopCloser(bytes.NewReader(text))
		resp.Header.Set("Content-Type", "application/json")
	}
	return resp
}
