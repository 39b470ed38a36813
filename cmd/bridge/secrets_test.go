package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// sayings are what anybody can see of a program, under the name of the place.
type sayings map[string]string

// secretsOf are those that an authorization server gave or was brought so far, by kind.
func secretsOf(i *issuer.Issuer) map[string]string {
	all := map[string]string{}
	i.Set(func() {
		for token := range i.Live {
			all[token] = "access token"
		}
		for token := range i.Refresh {
			all[token] = "refresh token"
		}
		for _, request := range i.Requests {
			for _, kind := range []string{"code", "code_verifier", "refresh_token", "client_assertion"} {
				if value := request.Get(kind); value != "" {
					all[value] = kind
				}
			}
		}
	})
	all["the-secret-of-the-client"] = "client secret"
	return all
}

// holdsNone looks for secrets, as they are and as they stand in addresses.
func (s sayings) holdsNone(t *testing.T, secrets map[string]string) {
	t.Helper()
	kinds := map[string]bool{}
	for secret, kind := range secrets {
		kinds[kind] = true
		for place, text := range s {
			if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
				t.Errorf("%s tells the %s", place, kind)
			}
		}
	}
	for _, kind := range []string{"access token", "refresh token", "code", "code_verifier", "client secret"} {
		if !kinds[kind] {
			t.Errorf("there was no %s to look for", kind)
		}
	}
	for place, text := range s {
		if text == "" {
			t.Errorf("%s is empty: nothing was looked at", place)
		}
	}
}

// Whatever a sign-in comes to, no token, code, verifier or secret is in a log, an error, a
// page, a metric, a recording with all that messages say, what the admin listener shows,
// or the list of processes.
func TestNoSecretOfASignInIsTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the browser of this test is a shell script")
	}
	i := issuer.New(t)
	i.MCP = peers.New(peers.ServerOptions{}).Handler()
	dir := t.TempDir()
	browser, tabs, secret, records := filepath.Join(dir, "browser"), filepath.Join(dir, "tabs"), filepath.Join(dir, "secret"), filepath.Join(dir, "records")
	for name, text := range map[string]string{browser: "ps -ww -e -o args >> " + tabs + " 2>&1; echo \"$@\" >> " + tabs + "\n", secret: "the-secret-of-the-client"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(records, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, "serve", "--upstream", i.Endpoint(), "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--admin.payloads", "on", "--record", records,
		"--log.level", "debug", "--log.format", "json", "--auth.mode", "agent", "--auth.wait", "1s", "--auth.store", "file", "--auth.dir", filepath.Join(dir, "logins"),
		"--auth.issuer", i.URL, "--auth.client-secret-file", secret, "--auth.browser", "sh "+browser)
	admin, token := adminOf(p)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := peers.Dial(ctx, "http://"+p.address+"/mcp", peers.ClientOptions{HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	said := sayings{}
	call := func(what string) string {
		result, err := c.Call(ctx, "greet", map[string]any{})
		switch {
		case err != nil:
			said[what] = err.Error()
		case result.IsError:
			said[what] = peers.Text(result)
		default:
			said[what] = "a result: " + peers.Text(result)
		}
		return said[what]
	}
	browse := func(what, text string) {
		resp, err := client.Get(regexp.MustCompile(`http://\S+`).FindString(text))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		said[what] = string(body)
	}

	first := call("the answer before the sign-in")
	i.Set(func() { i.Broken = http.StatusInternalServerError })
	browse("the page of a sign-in that fails", first)
	i.Set(func() { i.Broken = 0 })
	for { // the attempt that failed may have yet to end
		second := call("the answer after that")
		if strings.Contains(second, i.URL) && regexp.MustCompile(`http://\S+`).FindString(second) != regexp.MustCompile(`http://\S+`).FindString(first) {
			browse("the page of one that succeeds", second)
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the second sign-in: %s", second)
		}
	}
	call("the answer to a request that waits, or comes later")
	secrets := secretsOf(i)
	i.Set(func() { clear(i.Live); clear(i.Refresh) })
	call("the answer when the tokens were taken back")
	_ = c.Close()

	for _, page := range []string{"metrics", "", "waiting", "ended", "sessions", "server", "api/v1/state"} {
		status, text := seen(t, admin+page, token)
		if status != http.StatusOK {
			t.Errorf("the admin listener's page %q: %d", page, status)
		}
		said["the admin listener's page /"+page] = text
	}
	p.stop()
	_ = p.wait()
	said["the log"] = p.errors.String()
	said["what the browser and others see of processes"] = read(t, tabs)
	names, err := filepath.Glob(filepath.Join(records, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("the recordings are %v, %v", names, err)
	}
	for _, name := range names {
		said["the recording "+filepath.Base(name)] = read(t, name)
	}
	if len(said) < 14 {
		t.Errorf("there is too little to look at: %d places", len(said))
	}
	said.holdsNone(t, secrets)
}

func read(t *testing.T, name string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; { // a browser may still write
		text, err := os.ReadFile(name)
		if err == nil && len(text) > 0 || time.Now().After(deadline) {
			return string(text)
		}
	}
}
