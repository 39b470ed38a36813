package authorize

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

func TestSignInByCode(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Grant = Device })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := a.SignIn(ctx, nil, func(p Pending) {
		if p.Code != "WDJB-MJHT" || p.URL != i.URL+"/enter" {
			t.Errorf("told %+v", p)
		}
		i.Set(func() { i.Agreed = true })
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 0 {
		t.Errorf("%v; %d tabs", err, i.Tabs)
	}
}

// The authorization server may be away while the person enters the code.
func TestSignInByCodeOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	away := away{http.DefaultTransport, new(atomic.Bool)}
	a := newAgent(t, i, func(o *Options) { o.Grant, o.Issuers = Device, &http.Client{Transport: away} })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := a.SignIn(ctx, nil, func(Pending) {
		away.Store(true)
		i.Set(func() { i.Agreed = true })
	})
	if err != nil || away.Load() {
		t.Errorf("told %v; away %v", err, away.Load())
	}
}

// away is a network that loses one request while it is set.
type away struct {
	http.RoundTripper
	*atomic.Bool
}

func (a away) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.Swap(false) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("network is unreachable")}
	}
	return a.RoundTripper.RoundTrip(r)
}

func TestPastedRedirect(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	var page string
	read := func(wrong error) (string, error) {
		if wrong == nil {
			return "the end", nil
		} else if !strings.Contains(wrong.Error(), "code= and state=") {
			t.Errorf("told %v", wrong)
		}
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Get(page)
		if err != nil {
			return "", err
		}
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		return " " + resp.Header.Get("Location") + "\n", nil
	}
	if _, err := a.Paste(t.Context(), nil, func(p Pending) { page = p.URL }, read); err != nil {
		t.Fatal(err)
	}
	if err := call(t, a); err != nil {
		t.Error(err)
	}
}

func TestMachineAccounts(t *testing.T) {
	_, key := newKey(t)
	for name, change := range map[string]func(*Options){
		"secret": func(o *Options) {
			o.ClientID, o.ClientSecret, o.Issuer = "machine", "hush", strings.TrimSuffix(o.Server, "/mcp")
		},
		"key": func(o *Options) { o.ClientID, o.ClientKey = "machine", key },
	} {
		t.Run(name, func(t *testing.T) {
			i := issuer.New(t)
			i.Scopes = []string{"read"}
			a := newAgent(t, i, func(o *Options) { o.Grant = ClientCredentials; change(o) })
			if err := call(t, a); err != nil || i.Get(&i.Tabs) != 0 {
				t.Fatalf("%v; %d tabs", err, i.Tabs)
			}
			if last := i.Requests[len(i.Requests)-1]; last.Get("resource") != i.Endpoint() || last.Get("scope") != "read" {
				t.Errorf("asked with %v", last)
			}
		})
	}
}

func TestMachineWithoutProof(t *testing.T) {
	a := newAgent(t, issuer.New(t), func(o *Options) { o.Grant = ClientCredentials })
	if err := call(t, a); err == nil || !strings.Contains(err.Error(), "needs auth.client-id") {
		t.Errorf("told %v", err)
	}
}

// Vendors refuse the standard's parameters and want others.
func TestVendorsParameters(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) {
		o.Resource, o.Scopes, o.Parameters = OmitResource, []string{"api://x/.default"}, map[string]string{"access_type": "offline"}
	})
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	if q := i.Requests[0]; q.Has("resource") || q.Get("scope") != "api://x/.default" || q.Get("access_type") != "offline" {
		t.Errorf("asked with %v", q)
	}
	if i.Requests[1].Has("resource") {
		t.Error("the token request names a resource")
	}
}

// Nothing that a program says holds what nobody may see.
func TestSecretsStayInside(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Browser = []string{"true"} })
	p := begun(t, a)
	page, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	pending := a.store.pendingOf(page.Query().Get("state"))
	if pending == nil || pending.Verifier == "" || strings.Contains(p.Error(), pending.Verifier) {
		t.Error("the verifier is missing, or shown")
	}
	i.Set(func() { i.Broken = 400 })
	resp, err := http.Get(page.Query().Get("redirect_uri") + "?code=SECRETCODE&state=" + pending.State)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 1<<16)
	n, _ := resp.Body.Read(body)
	_ = resp.Body.Close()
	if text := string(body[:n]); strings.Contains(text, "SECRETCODE") || !strings.Contains(text, "You are not signed in") {
		t.Errorf("the page says %s", text)
	}
}

func TestNamesOfServers(t *testing.T) {
	for _, test := range []struct {
		identifier string
		same       bool
	}{
		{"https://mcp.example.com/a/mcp", true},
		{"https://mcp.example.com/a", true},
		{"https://mcp.example.com/", true},
		{"https://mcp.example.com", true},
		{"https://mcp.example.com/a/mcp/x", false},
		{"https://mcp.example.com/a/m", false},
		{"https://example.com/a/mcp", false},
		{"http://mcp.example.com/a/mcp", false},
		{"", false},
	} {
		if wellknown.Names(test.identifier, "https://mcp.example.com/a/mcp") != test.same {
			t.Errorf("%q: not %v", test.identifier, test.same)
		}
	}
}

func TestALateSignInIsForgotten(t *testing.T) {
	a := newAgent(t, issuer.New(t), nil)
	old := &pending{Began: time.Now().Add(-2 * signInLife), pendingSecrets: pendingSecrets{State: "old"}}
	if err := a.store.keepPending(old); err != nil {
		t.Fatal(err)
	}
	if a.store.pendingOf("old") != nil || a.store.newestPending() != nil {
		t.Error("it can still be finished")
	}
	if err := a.store.keepPending(&pending{Began: time.Now(), pendingSecrets: pendingSecrets{State: "new"}}); err != nil {
		t.Fatal(err)
	}
	if names, _ := a.store.Names("", pendingFile); len(names) != 1 {
		t.Errorf("kept are %v", names)
	}
}
