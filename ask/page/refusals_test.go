package page_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/ask/page"
)

func TestRefused(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Flights"})
	other := d.ask(page.Question{Server: "Hotels"})
	guard := guardOf(t, c, link)
	for name, attempt := range map[string]func() int{
		"another site's form": func() int {
			s, _ := post(t, c, link, guard, "f0=Eve", "accept", "Origin", "https://evil.example")
			return s
		},
		"a form from a page without an origin": func() int {
			s, _ := post(t, c, link, guard, "f0=Eve", "accept", "Origin", "null")
			return s
		},
		"a form that a browser calls cross-site": func() int {
			s, _ := post(t, c, link, guard, "f0=Eve", "accept", "Sec-Fetch-Site", "cross-site")
			return s
		},
		"no guard":                 func() int { s, _ := post(t, c, link, "", "f0=Eve", "accept"); return s },
		"another question's guard": func() int { s, _ := post(t, c, other, guard, "f0=Eve", "accept"); return s },
		"another browser":          func() int { s, _ := post(t, browser(t), link, guard, "f0=Eve", "accept"); return s },
		"a guessed link":           func() int { s, _ := get(t, c, link[:len(link)-1]+"!"); return s },
		"no action":                func() int { s, _ := post(t, c, link, guard, "f0=Eve", ""); return s },
		"too much":                 func() int { s, _ := post(t, c, link, guard, "f0="+strings.Repeat("x", 2<<20), "accept"); return s },
		"a name of the attacker's": func() int {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
			req.Host = "evil.example"
			s, _, _ := fetch(t, c, req)
			return s
		},
	} {
		if status := attempt(); status < 400 || status >= 500 {
			t.Errorf("%s got %d", name, status)
		}
	}
	if got := d.answered(); got != "" || d.Len() != 2 {
		t.Errorf("answered: %s", got)
	}
}

func TestPagesCannotBeFramedCachedOrScripted(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, d.ask(page.Question{Server: "Flights"}), nil)
	_, _, h := fetch(t, c, req)
	for name, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if !strings.Contains(h.Get(name), want) {
			t.Errorf("%s: %s", name, h.Get(name))
		}
	}
	for _, cookie := range h.Values("Set-Cookie") {
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
			t.Error(cookie)
		}
	}
}

func TestHostileTextsAreEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script>{{.}}` + "\u202e"
	f, err := form.Parse(fmt.Appendf(nil, `{"properties":{%q:{"type":"string","title":%q,"description":%q,"enum":[%q],"default":%q},"b":{"type":"array","items":{"enum":[%q]}}}}`, evil, evil, evil, evil, evil, evil))
	if err != nil {
		t.Fatal(err)
	}
	d, c := newDesk(t, 10), browser(t)
	_, body := get(t, c, d.ask(page.Question{Server: evil, Tool: evil, Message: evil, Form: f}))
	if strings.Contains(body, "<script") || !strings.Contains(body, "&lt;script&gt;") {
		t.Error(body)
	}
	_, body = get(t, c, d.ask(page.Question{Server: "s", URL: "javascript:alert(1)"}))
	if strings.Contains(body, `href="javascript`) {
		t.Error(body)
	}
}

// Two people, two links: neither opens the other's. A browser that is nobody yet, such
// as a phone, may take a link.
func TestNeitherOpensTheOthersLink(t *testing.T) {
	for name, named := range map[string]bool{"sessions": false, "users": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 10)
			ada, bob, fresh := browser(t), browser(t), browser(t)
			adas, bobs := d.ask(page.Question{Owner: "ada", Named: named}), d.ask(page.Question{Owner: "bob", Named: named})
			if status, _ := get(t, ada, adas); status != http.StatusOK {
				t.Fatal(status)
			}
			if named { // which also holds before anybody has opened it
				if status, _ := get(t, ada, bobs); status != http.StatusForbidden {
					t.Errorf("ada opens bob's unopened link: %d", status)
				}
			}
			guard := guardOf(t, bob, bobs)
			for browser, link := range map[*http.Client]string{ada: bobs, bob: adas} {
				if status, text := get(t, browser, link); status != http.StatusForbidden || strings.Contains(text, "<form") {
					t.Errorf("another's link: %d %s", status, text)
				}
			}
			if status, _ := post(t, ada, bobs, guard, "f0=Eve", "accept"); status != http.StatusForbidden || d.answered() != "" {
				t.Errorf("another's answer: %d", status)
			}
			if status, _ := get(t, fresh, bobs); status != http.StatusOK {
				t.Errorf("a new browser: %d", status)
			}
			if status, _ := post(t, bob, bobs, guard, "f0=Bob", "accept"); status != http.StatusOK || d.answered() == "" {
				t.Errorf("bob's answer: %d", status)
			}
			if status, _ := get(t, bob, adas); status != http.StatusForbidden {
				t.Errorf("ada's link for bob: %d", status)
			}
		})
	}
}

func TestTwoHundredFields(t *testing.T) {
	var properties, fields strings.Builder
	for i := range 200 {
		fmt.Fprintf(&properties, `,"f%d":{"type":"string"}`, i)
		fmt.Fprintf(&fields, "&f%d=x", i)
	}
	f, err := form.Parse([]byte(`{"properties":{` + properties.String()[1:] + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	d, ada := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Owner: "ada", Form: f})
	if _, text := get(t, ada, link); strings.Count(text, "<input type=\"text\"") != 200 {
		t.Errorf("%d fields are shown", strings.Count(text, "<input type=\"text\""))
	}
	if status, _ := post(t, ada, link, guardOf(t, ada, link), fields.String()[1:], "accept"); status != http.StatusOK || strings.Count(d.answered(), `:"x"`) != 200 {
		t.Errorf("the answer got %d", status)
	}
}
