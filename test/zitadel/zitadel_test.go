package zitadel

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/authorize"
)

// freeCallback is an address to come back to that nobody uses.
func freeCallback(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/callback"
}

// desktop is a person's machine: a place for logins, and the agents that share it.
type desktop struct {
	*world
	options authorize.Options
}

func newDesktop(t *testing.T) *desktop {
	t.Helper()
	callback := freeCallback(t)
	w := newWorld(t, callback)
	return &desktop{w, authorize.Options{
		Server: w.endpoint(), Dir: t.TempDir(), Store: "file", Browser: browser(), ClientID: "bridge", Callback: callback,
		Log: zerolog.New(zerolog.NewTestWriter(t)),
	}}
}

func (d *desktop) agent(t *testing.T) *authorize.Agent {
	t.Helper()
	a, err := authorize.New(d.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// call asks the MCP server, and signs in when it wants that.
func (d *desktop) call(ctx context.Context, a *authorize.Agent) (header string, err error) {
	for range 3 {
		if header, err = a.Authorization(ctx); err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.endpoint(), nil)
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return header, nil
		}
		refusal := authorize.Refusal{Authorization: header, Status: resp.StatusCode, Challenge: resp.Header.Values("WWW-Authenticate")}
		if err := a.Renew(ctx, refusal); err != nil {
			return "", err
		}
	}
	return "", context.DeadlineExceeded
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// expire makes the login that is kept one whose token has expired long ago.
func (d *desktop) expire(t *testing.T) {
	t.Helper()
	name := d.file(t)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var file, open map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file["open"], &open); err != nil {
		t.Fatal(err)
	}
	past, _ := json.Marshal(time.Now().Add(-time.Hour))
	for _, member := range []string{"renew", "expires", "updated", "signedIn"} {
		open[member] = past
	}
	file["open"], _ = json.Marshal(open)
	text, _ = json.Marshal(file)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, _ := filepath.Glob(filepath.Join(d.options.Dir, "*.opened")) // so long ago, too
	for _, name := range opened {
		_ = os.Remove(name)
	}
}

// file is where the login is kept.
func (d *desktop) file(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(d.options.Dir, "*.login"))
	if err != nil || len(names) != 1 {
		t.Fatalf("the logins are %v, %v", names, err)
	}
	return names[0]
}

func TestSignsInOnceAndIsNotAskedAgain(t *testing.T) {
	d := newDesktop(t)
	first, err := d.call(patience(t), d.agent(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // after a restart, and for other clients
		if header, err := d.call(patience(t), d.agent(t)); err != nil || header != first {
			t.Errorf("%v; the same token: %v", err, header == first)
		}
	}
	if pages, exchanges := d.pages.Load(), d.exchanges.Load(); pages != 1 || exchanges != 1 {
		t.Errorf("%d pages, %d requests for tokens", pages, exchanges)
	}
}

// Ten clients find the token expired at the same time. The server takes each refresh token
// once, so only one may come; and the one that it gave instead is good the next time.
func TestTenClientsRenewARotatingTokenOnce(t *testing.T) {
	d := newDesktop(t)
	if _, err := d.call(patience(t), d.agent(t)); err != nil {
		t.Fatal(err)
	}
	for round := range int32(3) {
		d.expire(t)
		agents := make([]*authorize.Agent, 10)
		for n := range agents {
			agents[n] = d.agent(t)
		}
		headers := make([]string, len(agents))
		var wg sync.WaitGroup
		for n, a := range agents {
			wg.Go(func() {
				var err error
				if headers[n], err = d.call(patience(t), a); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, header := range headers {
			if header == "" || header != headers[0] {
				t.Fatalf("in round %d the clients have different tokens, or none", round)
			}
		}
		if renewals := d.renewals.Load(); renewals != round+1 || d.pages.Load() != 1 {
			t.Fatalf("after round %d: %d renewals, %d pages", round, renewals, d.pages.Load())
		}
	}
}

// A refresh token that was used already, from a backup of the login, is refused: one more
// sign-in, and no loop.
func TestAUsedRefreshTokenMeansOneNewSignIn(t *testing.T) {
	d := newDesktop(t)
	if _, err := d.call(patience(t), d.agent(t)); err != nil {
		t.Fatal(err)
	}
	d.expire(t)
	old, err := os.ReadFile(d.file(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.call(patience(t), d.agent(t)); err != nil || d.renewals.Load() != 1 {
		t.Fatalf("%v; %d renewals", err, d.renewals.Load())
	}
	if err := os.WriteFile(d.file(t), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.call(patience(t), d.agent(t)); err != nil || d.renewals.Load() != 2 || d.pages.Load() != 2 {
		t.Errorf("%v; %d renewals, %d pages", err, d.renewals.Load(), d.pages.Load())
	}
}

func TestSignsInByACodeOnAnotherDevice(t *testing.T) {
	d := newDesktop(t)
	d.options.Grant, d.options.ClientID, d.options.ClientSecret, d.options.Issuer = authorize.Device, "device", "hush", d.URL
	a := d.agent(t)
	_, err := a.SignIn(patience(t), nil, func(p authorize.Pending) {
		if err := enter(p.URL, p.Code); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.call(patience(t), a); err != nil || d.pages.Load() != 0 {
		t.Errorf("%v; %d pages", err, d.pages.Load())
	}
}

// Who signs out has the server end the login, too.
func TestSignsOutAtTheServer(t *testing.T) {
	d := newDesktop(t)
	a := d.agent(t)
	if _, err := d.call(patience(t), a); err != nil {
		t.Fatal(err)
	}
	d.expire(t)
	kept, name := d.read(t)
	if had, err := a.SignOut(patience(t)); err != nil || !had {
		t.Fatal(had, err)
	}
	if err := os.WriteFile(name, kept, 0o600); err != nil { // a thief's copy
		t.Fatal(err)
	}
	if _, err := d.call(patience(t), d.agent(t)); err != nil || d.pages.Load() != 2 {
		t.Errorf("the copy works: %v; %d pages", err, d.pages.Load())
	}
}

func (d *desktop) read(t *testing.T) ([]byte, string) {
	t.Helper()
	name := d.file(t)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text, name
}
