package admin

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const secret = "a-token-of-some-length"

func guarded(t *testing.T, opt Options) http.Handler {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := NewToken(file)
	if err != nil {
		t.Fatal(err)
	}
	opt.Token = token
	opt.Static = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("static")) })
	opt.Inside = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) })
	return NewGuard(opt)
}

// send makes a request with headers, each as NAME: VALUE.
func send(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWhoMayLook(t *testing.T) {
	const bearer, local = "Authorization: Bearer " + secret, "http://127.0.0.1:8081/metrics"
	private := guarded(t, Options{})
	public := guarded(t, Options{TLS: true, Named: func(host string) bool { return host == "bridge.example" }})
	for name, tc := range map[string]struct {
		h       http.Handler
		url     string
		headers []string
		status  int
	}{
		"the token":                      {private, local, []string{bearer}, 200},
		"any port, as forwarded by ssh":  {private, "http://localhost:9999/metrics", []string{bearer}, 200},
		"IPv6":                           {private, "http://[::1]:8081/metrics", []string{bearer}, 200},
		"no token":                       {private, local, nil, 401},
		"another token":                  {private, local, []string{bearer + "x"}, 401},
		"an empty token":                 {private, local, []string{"Authorization: Bearer "}, 401},
		"another scheme":                 {private, local, []string{"Authorization: Basic " + secret}, 401},
		"the token as the cookie":        {private, local, []string{"Cookie: mcp_bridge_admin_1=" + secret}, 401},
		"a rebound name":                 {private, local, []string{bearer, "Host: evil.example:8081"}, 403},
		"an address of another machine":  {private, local, []string{bearer, "Host: 192.0.2.1:8081"}, 403},
		"no host":                        {private, local, []string{bearer, "Host: "}, 403},
		"another page's request":         {private, local, []string{bearer, "Origin: http://evil.example"}, 403},
		"another port's page":            {private, local, []string{bearer, "Origin: http://127.0.0.1:8080"}, 403},
		"an opaque origin":               {private, local, []string{bearer, "Origin: null"}, 403},
		"its own page":                   {private, local, []string{bearer, "Origin: http://127.0.0.1:8081", "Sec-Fetch-Site: same-origin"}, 200},
		"a link on another page":         {private, local, []string{bearer, "Sec-Fetch-Site: cross-site"}, 403},
		"another port's link":            {private, local, []string{bearer, "Sec-Fetch-Site: same-site"}, 403},
		"a name of the certificate":      {public, "https://bridge.example/metrics", []string{bearer}, 200},
		"a name that is none of its own": {public, "https://evil.example/metrics", []string{bearer}, 403},
		"an address, as scrapers use it": {public, "https://192.0.2.1:8081/metrics", []string{bearer}, 200},
		"plain HTTP's origin":            {public, "https://bridge.example/metrics", []string{bearer, "Origin: http://bridge.example"}, 403},
	} {
		w := send(tc.h, "GET", tc.url, "", tc.headers...)
		if w.Code != tc.status || (w.Code == 200) != (w.Body.String() == "inside") {
			t.Errorf("%s: %d %q, want %d", name, w.Code, w.Body, tc.status)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe-inline") {
			t.Errorf("%s: %s", name, csp)
		}
	}
}

// Cookies know no ports: what is set here, every other program on this machine could be sent.
func TestTheTokenIsExchangedForAPassThatNoOtherPortIsSent(t *testing.T) {
	for name, h := range map[string]http.Handler{"http": guarded(t, Options{}), "https": guarded(t, Options{TLS: true})} {
		base := name + "://127.0.0.1:8081"
		if w := send(h, "POST", base+"/door/enter", "wrong"); w.Code != 401 {
			t.Errorf("%s: a wrong token got %d %s", name, w.Code, w.Header())
		}
		if w := send(h, "POST", base+"/door/enter", strings.Repeat("x", maxEntry+1)); w.Code != 401 {
			t.Errorf("%s: a long token got %d", name, w.Code)
		}
		if w := send(h, "GET", base+"/door/enter", ""); w.Code != 405 {
			t.Errorf("%s: GET got %d", name, w.Code)
		}
		w := send(h, "POST", base+"/door/enter", secret, "Origin: "+base)
		pass := w.Body.String()
		if w.Code != 200 || pass == "" || strings.Contains(pass, secret) || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s %s", name, w.Code, pass, w.Header())
		}
		if w := send(h, "GET", base+"/", "", "Authorization: Bearer "+pass); w.Body.String() != "inside" {
			t.Errorf("%s: the pass got %d %s", name, w.Code, w.Body)
		}
		for _, cookie := range []string{pass, secret} {
			for _, name := range []string{"mcp_bridge_admin_8081", "mcp_bridge_admin_1"} {
				if w := send(h, "GET", base+"/", "", "Cookie: "+name+"="+cookie); w.Code != 401 {
					t.Errorf("a cookie got %d", w.Code)
				}
			}
		}
		if w := send(h, "POST", base+"/door/enter", pass); w.Code != 401 {
			t.Errorf("%s: a pass was exchanged for another: %d", name, w.Code)
		}
	}
}

// A pass outlives a restart with the same token, and ends.
func TestPassesEnd(t *testing.T) {
	token, other, now := newToken(secret, false), newToken(secret+"!", false), time.Unix(1_800_000_000, 0)
	pass := token.pass(now)
	again := newToken(secret, false)
	if !again.isPass(pass, now.Add(passLife-time.Second)) {
		t.Error("it does not last")
	}
	for name, taken := range map[string]bool{
		"late":              token.isPass(pass, now.Add(passLife+time.Second)),
		"from the future":   token.isPass(pass, now.Add(-time.Hour)),
		"of another token":  other.isPass(pass, now),
		"made to last":      token.isPass("2"+pass[1:], now.Add(time.Minute)),
		"without its end":   token.isPass(pass[:len(pass)-1], now),
		"without signature": token.isPass(strings.SplitAfter(pass, ".")[0], now),
		"empty":             token.isPass("", now),
		"a dot":             token.isPass(".", now),
	} {
		if taken {
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestAPersonWithoutTokenGetsTheDoor(t *testing.T) {
	h := guarded(t, Options{})
	w := send(h, "GET", "http://127.0.0.1:8081/", "", "Accept: text/html")
	if w.Code != 401 || !strings.Contains(w.Body.String(), "/door/door.mjs") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, file := range []string{"/door/door.mjs", "/door/pass.mjs", "/door/door.css", "/static/view.css"} { // a stylesheet has no headers
		if w := send(h, "GET", "http://127.0.0.1:8081"+file, ""); w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: %d", file, w.Code)
		}
	}
	for _, more := range []string{"/door/../guard.go", "/static/../metrics", "/static"} {
		if w := send(h, "GET", "http://127.0.0.1:8081"+more, ""); w.Body.String() == "inside" || strings.HasPrefix(more, "/door") && w.Code == 200 {
			t.Errorf("the door shows more than itself: %s", more)
		}
	}
}

func TestTokens(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("12345\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{short, filepath.Join(dir, "missing")} {
		if _, err := NewToken(file); err == nil || !strings.Contains(err.Error(), "admin.token-file") {
			t.Errorf("%s: %v", file, err)
		}
	}
	a, _ := NewToken("")
	b, _ := NewToken("")
	if !a.Shown || a.text == b.text || len(a.text) < minToken {
		t.Error("a token that is made up must be random, and shown")
	}
}
