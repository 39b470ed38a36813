package authorize

import (
	"errors"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// signedIn is an agent with a login, and the login's file.
func signedIn(t *testing.T, i *issuer.Issuer) (a *Agent, file string) {
	t.Helper()
	a = newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	list, err := List(a.opt.Dir)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return a, list[0].File
}

// A file that cannot be read is told of: its person has been asked to sign in for no reason
// that they can see.
func TestADamagedLoginIsTold(t *testing.T) {
	for _, text := range []string{"", "{", "null", `{"version":1}`, `{"version":9,"open":{}}`} {
		a, file := signedIn(t, issuer.New(t))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := List(a.opt.Dir); err != nil || len(list) != 1 || list[0].Problem == "" || list[0].File != file {
			t.Errorf("%q: the list is %+v, %v", text, list, err)
		}
		if had, err := a.SignOut(t.Context()); err != nil || !had {
			t.Errorf("%q: %v %v", text, had, err)
		}
		if list, err := List(a.opt.Dir); err != nil || len(list) != 0 {
			t.Errorf("%q: %+v is left, %v", text, list, err)
		}
	}
}

func TestALoginThatOthersMayReadIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	a, file := signedIn(t, issuer.New(t))
	for mode, loose := range map[os.FileMode]bool{0o600: false, 0o640: true, 0o604: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if list, err := List(a.opt.Dir); err != nil || len(list) != 1 || list[0].Loose != loose {
			t.Errorf("%v: %+v %v", mode, list, err)
		}
	}
}

// Whoever wants logins to be sealed is not served by one that is not.
func TestAPlainLoginIsNoneWhereTheyAreToBeSealed(t *testing.T) {
	i := issuer.New(t)
	a, _ := signedIn(t, i)
	sealed := newAgent(t, i, func(o *Options) { o.Dir, o.Store, o.Keys = a.opt.Dir, "keyring", brokenRing{} })
	if sealed.Login() != nil {
		t.Error("the plain login is used")
	}
	if err := call(t, sealed); err == nil || !strings.Contains(err.Error(), "the keyring cannot be used") || i.Get(&i.Tabs) != 1 {
		t.Errorf("told %v; %d tabs", err, i.Get(&i.Tabs))
	}
}

// brokenRing is a machine without a keyring.
type brokenRing struct{}

func (brokenRing) Get() (string, error) { return "", errors.New("no keyring") }
func (brokenRing) Set(string) error     { return errors.New("no keyring") }

// Nothing is left here, and the person knows that the login goes on there.
func TestSignOutSaysThatTheIssuerWasNotTold(t *testing.T) {
	for name, way := range map[string]http.RoundTripper{"it is down": downWay{}, "it has a problem": problemWay{}} {
		i := issuer.New(t)
		first, _ := signedIn(t, i)
		a := newAgent(t, i, func(o *Options) { o.Dir, o.Issuers = first.opt.Dir, &http.Client{Transport: way} })
		had, err := a.SignOut(t.Context())
		failure, ok := errors.AsType[*Failure](err)
		if !had || !ok || !failure.Passing || !strings.Contains(err.Error(), "could not be told") {
			t.Errorf("%s: %v %v", name, had, err)
		}
		if list, err := List(a.opt.Dir); err != nil || len(list) != 0 {
			t.Errorf("%s: %+v is left, %v", name, list, err)
		}
	}
}

type downWay struct{}

func (downWay) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

type problemWay struct{}

func (problemWay) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
}

// However people write a server's address, its login is the same.
func TestAServerHasOneLogin(t *testing.T) {
	for written, known := range map[string]string{
		"HTTPS://MCP.Example.com:443": "https://mcp.example.com", "https://mcp.example.com/": "https://mcp.example.com",
		"http://LocalHost:80/Mcp?A=B": "http://localhost/Mcp?A=B", "https://mcp.example.com:8443/mcp/": "https://mcp.example.com:8443/mcp/", "mcp": "",
	} {
		if got := Address(written); got != known {
			t.Errorf("%s is known as %s", written, got)
		}
	}
	i := issuer.New(t)
	a, _ := signedIn(t, i)
	again := newAgent(t, i, func(o *Options) { o.Dir, o.Server = a.opt.Dir, strings.Replace(i.Endpoint(), "http", "HTTP", 1)+"#x" })
	if again.Login() == nil {
		t.Error("the login is not found")
	}
}
