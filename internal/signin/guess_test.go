package signin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
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

// oldGuarded is a guarded legacy server that fails at what it does not know.
type oldGuarded struct{ upstream.Caller }

func (oldGuarded) Do(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Authorization == "" {
		return nil, &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}
	}
	return nil, &upstream.Failure{Cause: upstream.ServerError, Status: http.StatusInternalServerError}
}

func (oldGuarded) Signs() upstream.Signs { return upstream.Signs{} }

func (oldGuarded) LegacyOffer(_ context.Context, call *upstream.Call) negotiate.Offer {
	if call.Authorization == "" {
		return negotiate.Offer{Refused: &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}}
	}
	return negotiate.Offer{Versions: []string{"2025-06-18"}}
}

// What was made up while nobody had signed in says nothing of the server.
func TestAGuessIsNoProof(t *testing.T) {
	i := issuer.New(t)
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		way := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if !up.Load() {
				return nil, errors.New("the authorization server is away")
			}
			return direct(i.Config.Handler)(r)
		})}
		agent, err := authorize.New(authorize.Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Grant: authorize.ClientCredentials,
			ClientID: "machine", ClientSecret: "hush", Issuer: strings.TrimSuffix(i.Endpoint(), "/mcp"), Resources: way, Issuers: way})
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Close()
		account := &signin.Account{Agent: agent, Wait: time.Minute, Heartbeat: time.Second}
		caller := account.Caller(oldGuarded{}, func(context.Context) error { return nil })
		p := negotiate.NewProber(negotiate.Options{Guessed: signin.Guessed})
		look := func() negotiate.Verdict {
			return p.Again(t.Context(), "", upstream.NewPeer(caller, upstream.Call{Method: mcp.MethodDiscover, Params: []byte(`{}`)}))
		}
		if v := look(); !signin.Guessed(v.Discover) {
			t.Fatalf("%+v", v)
		}
		up.Store(true)
		time.Sleep(10 * time.Second)
		if v := look(); v.Proven() != negotiate.Legacy {
			t.Errorf("once it is signed in: %+v", v)
		}
	})
}
