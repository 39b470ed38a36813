package signin_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/internal/peers/issuer"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// hanging is the way to an authorization server that answers nothing.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// there is a server that wants credentials.
type there struct{ upstream.Caller }

func (there) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	return nil, &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}
}

// behindItsStream is a server of HTTP+SSE that guards its stream alone.
type behindItsStream struct{ upstream.Caller }

func (behindItsStream) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	return nil, &upstream.Failure{Cause: upstream.NotModern, Status: http.StatusNotFound}
}

func (behindItsStream) Signs() upstream.Signs { return upstream.Signs{} }

func (behindItsStream) LegacyOffer(context.Context, *upstream.Call) negotiate.Offer {
	return negotiate.Offer{Refused: &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}}
}

// A server that says of what is posted that there is nothing, and wants credentials for its stream, is signed in to.
func TestAServerThatGuardsItsStreamAloneIsSignedInTo(t *testing.T) {
	i := issuer.New(t)
	agent, err := authorize.New(authorize.Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Browser: []string{"true"},
		Resources: &http.Client{Transport: &http.Transport{}}, Issuers: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	account := &signin.Account{Agent: agent, Wait: time.Millisecond, Heartbeat: time.Second}
	caller := account.Caller(behindItsStream{}, func(context.Context) error { return nil })
	if answer, err := caller.Do(t.Context(), &upstream.Call{Method: mcp.MethodDiscover, Params: []byte(`{}`)}, nil); err != nil || !signin.Guessed(answer.Result) {
		t.Errorf("before anybody has signed in it is %+v, %v", answer, err)
	}
	_, err = caller.Do(t.Context(), &upstream.Call{Method: mcp.MethodToolsCall, Params: []byte(`{}`)}, nil)
	if failure, ok := errors.AsType[*upstream.Failure](err); !ok || failure.Cause != upstream.SignIn {
		t.Errorf("a call gets %v", err)
	}
}

// While an authorization server answers nothing and the token is no good, calls end when their time to wait is over, and the
// server itself counts as there.
func TestAServerIsThereWhileItsLoginCannotBeRenewed(t *testing.T) {
	i := issuer.New(t)
	opt := authorize.Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Grant: authorize.ClientCredentials,
		ClientID: "machine", ClientSecret: "hush", Issuer: strings.TrimSuffix(i.Endpoint(), "/mcp"),
		Resources: &http.Client{Transport: &http.Transport{}}, Issuers: &http.Client{Transport: &http.Transport{}}}
	first, err := authorize.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Renew(t.Context(), authorize.Refusal{Status: http.StatusUnauthorized}); err != nil {
		t.Fatal(err)
	}
	first.Close()
	synctest.Test(t, func(t *testing.T) {
		opt.Resources, opt.Issuers = &http.Client{Transport: hanging{}}, &http.Client{Transport: hanging{}}
		agent, err := authorize.New(opt)
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Close()
		time.Sleep(time.Until(agent.Login().Expires.Add(time.Hour)))
		account := &signin.Account{Agent: agent, Wait: 5 * time.Second, Heartbeat: time.Second}
		caller := account.Caller(there{}, func(context.Context) error { return nil })
		began := time.Now()
		_, err = caller.Do(t.Context(), &upstream.Call{Method: mcp.MethodToolsCall, Params: []byte(`{}`)}, nil)
		failure, ok := errors.AsType[*upstream.Failure](err)
		if !ok || failure.Cause != upstream.SignIn || !strings.Contains(err.Error(), "nothing was lost") || time.Since(began) != account.Wait {
			t.Errorf("after %v a call failed with %v", time.Since(began), err)
		}
		account.Wait = time.Minute
		caller = account.Caller(there{}, func(context.Context) error { return nil })
		began = time.Now()
		if answer, err := caller.Do(t.Context(), &upstream.Call{Method: mcp.MethodDiscover, Params: []byte(`{}`)}, nil); err != nil || !signin.Guessed(answer.Result) {
			t.Errorf("the server does not count as there: %+v, %v", answer, err)
		}
		if took := time.Since(began); took > 5*time.Second { // clients give an initialize up, and do not repeat it
			t.Errorf("that took %v", took)
		}
	})
}

// An authorization server that has a problem has calls that can wait for it wait; one that refuses does not.
func TestWhatPassesAtAnAuthorizationServerIsToldApart(t *testing.T) {
	i := issuer.New(t)
	status := 0
	refusing := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost {
			return http.DefaultTransport.RoundTrip(r)
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	for _, status = range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusForbidden} {
		agent, err := authorize.New(authorize.Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Grant: authorize.ClientCredentials,
			ClientID: "machine", ClientSecret: "hush", Issuer: strings.TrimSuffix(i.Endpoint(), "/mcp"),
			Resources: &http.Client{Transport: &http.Transport{}}, Issuers: &http.Client{Transport: refusing}})
		if err != nil {
			t.Fatal(err)
		}
		account := &signin.Account{Agent: agent, Wait: 5 * time.Second, Heartbeat: time.Second}
		_, err = account.Caller(there{}, func(context.Context) error { return nil }).Do(t.Context(), &upstream.Call{Method: mcp.MethodToolsCall, Params: []byte(`{}`)}, nil)
		agent.Close()
		failure, ok := errors.AsType[*upstream.Failure](err)
		if !ok || failure.Cause != upstream.SignIn || failure.RetryAfter > 0 != (status != http.StatusForbidden) {
			t.Errorf("HTTP %d: %+v", status, failure)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request that is handed on as it is, and cannot be signed, is answered in the server's place; an answer of somebody's is not
// taken for done, as a notification is, which nobody waits for.
func TestWhatCannotBeSignedIsNotTakenForDone(t *testing.T) {
	i := issuer.New(t)
	agent, err := authorize.New(authorize.Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Browser: []string{"true"},
		Resources: &http.Client{Transport: &http.Transport{}}, Issuers: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	account := &signin.Account{Agent: agent, Wait: 5 * time.Second, Heartbeat: time.Second}
	transport := account.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}))
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:                http.StatusOK,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`: http.StatusAccepted,
		`{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`:       http.StatusServiceUnavailable,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.Endpoint(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || (resp.Header.Get("Retry-After") != "") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%s gets %d %v", body, resp.StatusCode, resp.Header)
		}
	}
}

// cold is a guarded server that takes its time for its first answer.
type cold struct{ upstream.Caller }

func (cold) Do(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Authorization == "" {
		time.Sleep(10 * time.Second)
		return nil, &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}
	}
	return &upstream.Answer{Result: []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)}, nil
}

// direct is the way to a server without a network in between.
func direct(server http.Handler) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		in := r.Clone(r.Context())
		in.Host, in.RequestURI = in.URL.Host, in.URL.RequestURI()
		in.Body = cmp.Or(in.Body, io.ReadCloser(http.NoBody))
		out := httptest.NewRecorder()
		server.ServeHTTP(out, in)
		resp := out.Result()
		resp.Request = r
		return resp, nil
	}
}

// The time that a discover has for credentials is the authorization server's, and not the server's.
func TestAServerThatTakesItsTimeLeavesTimeToSignIn(t *testing.T) {
	i := issuer.New(t)
	synctest.Test(t, func(t *testing.T) {
		way := &http.Client{Transport: direct(i.Config.Handler)}
		agent, err := authorize.New(authorize.Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Grant: authorize.ClientCredentials,
			ClientID: "machine", ClientSecret: "hush", Issuer: strings.TrimSuffix(i.Endpoint(), "/mcp"), Resources: way, Issuers: way})
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Close()
		account := &signin.Account{Agent: agent, Wait: time.Minute, Heartbeat: time.Second}
		caller := account.Caller(cold{}, func(context.Context) error { return nil })
		answer, err := caller.Do(t.Context(), &upstream.Call{Method: mcp.MethodDiscover, Params: []byte(`{}`)}, nil)
		if err != nil || signin.Guessed(answer.Result) {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}
