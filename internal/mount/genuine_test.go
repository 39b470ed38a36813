package mount

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// judging is a server that gives only this to anybody, by texts in the body, and all else to
// whoever brings a token that is signed.
func judging(t *testing.T, anybody ...string) Options {
	t.Helper()
	server := peers.NewServer(t, peers.ServerOptions{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !slices.ContainsFunc(anybody, func(text string) bool { return strings.Contains(string(body), text) }) &&
				!strings.HasSuffix(r.Header.Get("Authorization"), "signed") {
				w.Header().Set("WWW-Authenticate", "Bearer")
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	return Options{Concurrency: 1, Upstream: streamable.Options{URL: server.URL, StandardTransport: testmode.StandardHTTP()}}
}

func tokenOf(subject string, n int, signature string) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return "Bearer " + part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"iss":"https://as","sub":%q,"jti":"%d"}`, subject, n)) + "." + signature
}

// owned is a session of whom the first token is for.
type owned struct {
	t            *testing.T
	url, session string
}

func open(t *testing.T, opt Options, token string) *owned {
	t.Helper()
	_, url := serve(t, opt)
	return openAt(t, url, token)
}

// openAt is a session at a mount.
func openAt(t *testing.T, url, token string) *owned {
	t.Helper()
	o := &owned{t: t, url: url}
	resp := o.as(token, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if o.session = resp.Header.Get("Mcp-Session-Id"); o.session == "" {
		t.Fatalf("no session: %s", resp.Status)
	}
	o.as(token, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return o
}

func (o *owned) as(token, method, body string) *http.Response {
	o.t.Helper()
	resp, _ := o.says(token, method, body)
	return resp
}

// says is as, with what was answered.
func (o *owned) says(token, method, body string) (*http.Response, string) {
	o.t.Helper()
	req := request(o.t, method, o.url, o.session, body)
	req.Header.Set("Authorization", token)
	resp, err := wire.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return resp, string(text)
}

func (o *owned) call(what, token, tool string, want int) {
	o.t.Helper()
	resp := o.as(token, http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`)
	if resp.StatusCode != want {
		o.t.Errorf("%s: %s", what, resp.Status)
	}
}

// owns reports whether the session is bound to a token.
func (o *owned) owns(what, token string, want bool) {
	o.t.Helper()
	resp := o.as(token, http.MethodPost, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if (resp.StatusCode == http.StatusOK) != want {
		o.t.Errorf("%s: ping answers %s", what, resp.Status)
	}
}

const (
	publicEcho = `"name":"echo"`
	discovers  = `"method":"server/discover"`
	listsTools = `"method":"tools/list"`
)

// What a server gives to anybody says nothing of a token, though it judges all others.
func TestAForgedTokenTakesNoSessionOverByAToolForEverybody_H6(t *testing.T) {
	alice, newer, newest := tokenOf("alice", 1, "signed"), tokenOf("alice", 2, "signed"), tokenOf("alice", 3, "signed")
	forged := tokenOf("alice", 1, "made-up")
	for name, anybody := range map[string][]string{"one tool": {publicEcho}, "to be looked at": {publicEcho, discovers}} {
		o := open(t, judging(t, anybody...), alice)
		o.call(name+": forged, for a guarded tool", forged, "weather", http.StatusUnauthorized)
		for range 2 {
			o.call(name+": forged", forged, "echo", http.StatusOK)
			o.owns(name+": forged", forged, false)
		}
		o.owns(name+": its owner", alice, true)
		o.call(name+": a newer one", newer, "echo", http.StatusOK)
		o.owns(name+": a newer one", newer, true)
		o.call(name+": the newest one", newest, "weather", http.StatusOK)
		o.owns(name+": the newest one", newest, true)
		if resp := o.as(forged, http.MethodDelete, ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: DELETE of the forged one: %s", name, resp.Status)
		}
	}
}

// A server that tells anybody what it has, and judges only its tools, is believed about a tool
// that it has refused others.
func TestATokenTakesASessionOverByAToolThatOthersWereRefused_H6(t *testing.T) {
	alice, newer, forged := tokenOf("alice", 1, "signed"), tokenOf("alice", 2, "signed"), tokenOf("alice", 1, "made-up")
	o := open(t, judging(t, publicEcho, discovers, listsTools), alice)
	o.call("forged", forged, "weather", http.StatusUnauthorized)
	o.call("forged", forged, "echo", http.StatusOK)
	o.owns("forged", forged, false)
	o.call("a newer one", newer, "weather", http.StatusOK)
	o.owns("a newer one", newer, true)
}

// As far as anybody can see, such a server takes every token.
func TestWhereTheServerRefusesNobodyANewerTokenTakesTheSessionOver_H6(t *testing.T) {
	alice, newer := tokenOf("alice", 1, "any"), tokenOf("alice", 2, "any")
	o := open(t, judging(t, ""), alice)
	o.owns("before", newer, false)
	o.call("a newer one", newer, "echo", http.StatusOK)
	o.owns("after", newer, true)
}

// ofTask posts a request about a task, and fails unless it is answered with this text.
func (o *owned) ofTask(token, method, params, want string) string {
	o.t.Helper()
	_, got := o.says(token, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"`+method+`","params":`+params+`}`)
	if !strings.Contains(got, want) {
		o.t.Errorf("%s: %s; want %s", method, got, want)
	}
	return got
}

// begin has the bridge host a task, and returns the params that name it.
func (o *owned) begin(token string) (params string) {
	o.t.Helper()
	created := o.ofTask(token, mcp.MethodToolsCall, `{"name":"weather","arguments":{},"task":{}}`, "taskId")
	return `{"taskId":` + string(rawjson.Get(rawjson.Get(rawjson.Get([]byte(created), "result"), "task"), "taskId")) + `}`
}

func hosting(opt Options) Options {
	opt.Bridge.Rules.HostTasks = true
	return opt
}

// Who only polls makes no call by which the server could accept the token that replaced the one
// that the task began with.
func TestATaskIsFoundWithANewerTokenAndWithNoForgedOne_H6(t *testing.T) {
	alice, newer, forged := tokenOf("alice", 1, "signed"), tokenOf("alice", 2, "signed"), tokenOf("alice", 1, "made-up")
	for name, anybody := range map[string][]string{"all guarded": {"no such thing"}, "one tool": {publicEcho}, "to be looked at": {publicEcho, discovers}} {
		t.Run(name, func(t *testing.T) {
			o := open(t, hosting(judging(t, anybody...)), alice)
			task := o.begin(alice)
			for _, method := range []string{mcp.MethodTasksGet, mcp.MethodTasksResult, mcp.MethodTasksList, mcp.MethodTasksCancel} {
				o.ofTask(forged, method, task, "no such session")
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				if resp := o.as(forged, method, ""); resp.StatusCode != http.StatusNotFound {
					t.Errorf("%s with a forged one: %s", method, resp.Status)
				}
			}
			o.ofTask(newer, mcp.MethodTasksGet, task, `"status"`)
			o.ofTask(newer, mcp.MethodTasksResult, task, `"content"`)
			o.owns("a forged one afterwards", forged, false)
		})
	}
}

// From a server that takes every token nothing can be told by asking: one that was never shown
// the token has accepted nothing.
func TestWhereTheServerRefusesNobodyATaskIsFoundAfterACallOnly_H6(t *testing.T) {
	alice, newer := tokenOf("alice", 1, "any"), tokenOf("alice", 2, "any")
	o := open(t, hosting(judging(t, "")), alice)
	task := o.begin(alice)
	o.ofTask(newer, mcp.MethodTasksGet, task, "no such session")
	o.call("a newer one", newer, "echo", http.StatusOK)
	o.ofTask(newer, mcp.MethodTasksResult, task, `"content"`)
}
