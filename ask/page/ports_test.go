package page_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/ask/page"
)

var inboxLink = regexp.MustCompile(`href="([^"]*/mine/[0-9a-f]+)"`)

// inboxOf opens a question and returns where its page says that the others wait.
func inboxOf(t *testing.T, c *http.Client, link string) string {
	t.Helper()
	_, body := get(t, c, link)
	found := inboxLink.FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no inbox in %s", body)
	}
	return found[1]
}

// Cookies know no ports: any program on this machine to which a browser is led gets
// those of the page, and may be a client of the bridge itself, with links of its own.
func TestWhoHasTheCookiesOnlyLearnsNoLinks(t *testing.T) {
	d, ada, fresh := newDesk(t, 10), browser(t), browser(t)
	opened, second := d.ask(page.Question{Server: "Flights", Owner: "ada"}), d.ask(page.Question{Server: "Hotels", Owner: "ada"})
	used := d.ask(page.Question{Server: "Trains", Owner: "ada"})
	theirs := d.ask(page.Question{Server: "Thieves", Owner: "thief"})
	post(t, ada, used, guardOf(t, ada, used), "f0=Ada", "accept")
	inbox := inboxOf(t, ada, opened)
	thief := &http.Client{Jar: ada.Jar}
	shown := func(address string) {
		t.Helper()
		_, body := get(t, thief, address)
		for _, secret := range []string{opened, second, inbox} {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows %s", address, secret)
			}
		}
	}
	own := inboxOf(t, thief, theirs)
	for _, address := range []string{"", "/", "/mine/", "/mine/" + strings.Repeat("0", 32), "/q/", "/q/none", "/none", "/style.css"} {
		shown(d.url + address)
	}
	for _, address := range []string{used, theirs, own} {
		shown(address)
	}
	if _, body := post(t, thief, theirs, guardOf(t, thief, theirs), "f0=Eve", "accept"); strings.Contains(body, inbox) {
		t.Error("the answer to a question of the thief's own shows the inbox")
	}
	if _, body := get(t, fresh, inbox); strings.Contains(body, "/q/") {
		t.Errorf("the address of an inbox shows questions without the cookie: %s", body)
	}
	if _, body := get(t, ada, inbox); !strings.Contains(body, opened) || !strings.Contains(body, second) || strings.Contains(body, theirs) {
		t.Errorf("the inbox of its owner: %s", body)
	}
}

// Where the page has TLS, nothing without can set its cookies.
func TestCookiesOfATLSPageAreMarked(t *testing.T) {
	d := newDesk(t, 10)
	for base, prefix := range map[string]string{"https://bridge.example/questions": "__Secure-mcp-bridge-", d.url: "mcp-bridge-"} {
		cookies := cookiesOf(t, base)
		if len(cookies) == 0 {
			t.Errorf("%s sets no cookie", base)
		}
		for _, c := range cookies {
			if !strings.HasPrefix(c.Name, prefix) || c.Secure != strings.HasPrefix(base, "https") || !c.HttpOnly || c.Path != "/questions/" {
				t.Errorf("%s: %v", base, c)
			}
		}
	}
}

func cookiesOf(t *testing.T, address string) []*http.Cookie {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	d := page.New(base, 1, "")
	link, err := d.Ask(page.Question{Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, link, nil)
	d.ServeHTTP(w, r)
	return w.Result().Cookies()
}

// Browsers leave the default port out, and proxies may put it in.
func TestTheDefaultPortMakesNoDifference(t *testing.T) {
	for base, hosts := range map[string][]string{
		"http://bridge.test:80/questions": {"bridge.test", "bridge.test:80"}, "https://bridge.test:443/questions": {"bridge.test", "bridge.test:443"},
		"https://bridge.test/questions": {"bridge.test", "bridge.test:443"}, "http://bridge.test:8443/questions": {"bridge.test:8443"},
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		d := page.New(u, 1, "")
		link, err := d.Ask(page.Question{})
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range append(hosts, "bridge.test:8080") {
			r := httptest.NewRequest(http.MethodGet, link, nil)
			r.Host = host
			if got := d.Has(r); got != (host != "bridge.test:8080") {
				t.Errorf("%s at %s: %v", host, base, got)
			}
		}
		if strings.Contains(link, ":80/") || strings.Contains(link, ":443/") {
			t.Errorf("%s: %s", base, link)
		}
	}
}
