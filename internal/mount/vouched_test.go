package mount

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/vouch"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// mixed is a server with a tool for everybody and one that it guards.
type mixed struct{ upstream.Caller }

func (mixed) Do(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	if status := mixedStatus(call.Authorization, string(call.Params)); status != http.StatusOK {
		return nil, &upstream.Failure{Cause: upstream.Unauthorized, Status: status}
	}
	return &upstream.Answer{}, nil
}

// RoundTrip implements http.RoundTripper: the server looks at no header.
func (mixed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	return &http.Response{StatusCode: mixedStatus(r.Header.Get("Authorization"), string(body)), Body: http.NoBody}, nil
}

func mixedStatus(authorization, text string) int {
	if strings.Contains(text, `"name":"guarded"`) && !strings.HasPrefix(authorization, "Bearer good") {
		return http.StatusUnauthorized
	}
	return http.StatusOK
}

// One refusal of the guarded tool, and a call of the other with each made-up token, made each
// of them a party of its own.
func TestAToolForEverybodyVouchesForNobody(t *testing.T) {
	const guarded, public, made, good = "guarded", "public", "Bearer made-up", "Bearer good"
	ways := map[string]func(known *vouch.Credentials) func(authorization, tool string){
		"calls": func(known *vouch.Credentials) func(string, string) {
			caller := &vouching{mixed{}, known}
			return func(authorization, tool string) {
				_, _ = caller.Do(t.Context(), &upstream.Call{
					Method: mcp.MethodToolsCall, Params: []byte(`{"name":"` + tool + `"}`), Authorization: authorization,
				}, nil)
			}
		},
		"what is handed on": func(known *vouch.Credentials) func(string, string) {
			transport := &vouchingTransport{mixed{}, known}
			return func(authorization, tool string) {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server.example",
					strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`))
				r.Header.Set("Authorization", authorization)
				r.Header.Set(mcp.HeaderMethod, mcp.MethodToolsCall)
				r.Header.Set(mcp.HeaderName, guarded) // whatever the client says
				resp, err := transport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		},
	}
	for name, way := range ways {
		known := vouch.New()
		call := way(known)
		call("Bearer wrong", guarded)
		call(made, public)
		if known.Vouched(made) {
			t.Errorf("%s: vouched for by a tool that everybody may call", name)
		}
		call(good, guarded)
		if !known.Vouched(good) {
			t.Errorf("%s: not vouched for by a tool that refuses others", name)
		}
	}
}
