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
	status := mixedStatus(r.Header.Get("Authorization"), string(body))
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(resultText))}, nil
}

const resultText = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`

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
				r := toolCall(t, authorization, tool)
				r.Header.Set(mcp.HeaderName, guarded) // whatever the client says
				resp, err := transport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
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

func toolCall(t *testing.T, authorization, tool string) *http.Request {
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server.example",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`))
	r.Header.Set("Authorization", authorization)
	r.Header.Set(mcp.HeaderMethod, mcp.MethodToolsCall)
	return r
}

// transport is a server by what it answers.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server may find what is wrong with the arguments before it looks at the token, and say so
// with status 200: whatever token was brought was vouched for.
func TestAnErrorWithStatus200VouchesForNobody_H6(t *testing.T) {
	const fault = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad arguments"}}`
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   bool
	}{
		"result":                   {http.Header{"Content-Type": {jsonType}}, resultText, true},
		"result of a stream":       {http.Header{"Content-Type": {eventStream}}, "data: " + resultText + "\n\n", true},
		"error":                    {http.Header{"Content-Type": {jsonType}}, fault, false},
		"error of a stream":        {http.Header{"Content-Type": {eventStream}}, "data: " + fault + "\n\n", false},
		"nothing":                  {http.Header{}, "", false},
		"a page":                   {http.Header{"Content-Type": {"text/html"}}, resultText, false},
		"compressed":               {http.Header{"Content-Type": {jsonType}, "Content-Encoding": {"gzip"}}, resultText, false},
		"a result that breaks off": {http.Header{"Content-Type": {jsonType}}, strings.TrimSuffix(resultText, "}"), false},
	} {
		known := vouch.New()
		known.Refused("Bearer wrong", vouch.Of(mcp.MethodToolsCall, []byte("guarded")))
		server := transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body))}, nil
		})
		resp, err := (&vouchingTransport{server, known}).RoundTrip(toolCall(t, "Bearer made-up", "guarded"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(text) != c.body {
			t.Errorf("%s: passed on as %q, %v", name, text, err)
		}
		if got := known.Vouched("Bearer made-up"); got != c.want {
			t.Errorf("%s: vouched for: %v", name, got)
		}
	}
}

// What is read on its way is handed on as it comes.
func TestAResponseThatIsJudgedStaysAStream(t *testing.T) {
	known := vouch.New()
	known.Refused("Bearer wrong", vouch.Of(mcp.MethodToolsCall, []byte("guarded")))
	body, server := io.Pipe()
	resp, err := (&vouchingTransport{transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {eventStream}}, Body: body}, nil
	}), known}).RoundTrip(toolCall(t, "Bearer good", "guarded"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	const note, result = "data: {\"method\":\"notifications/progress\"}\n\n", "data: " + resultText + "\n\n"
	for _, part := range []string{note, result} {
		go func() { _, _ = io.WriteString(server, part) }()
		got := make([]byte, len(part))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != part {
			t.Fatalf("%q, %v", got, err)
		}
		if want := part == result; known.Vouched("Bearer good") != want {
			t.Errorf("after %q: vouched for: %v", part, !want)
		}
	}
}
