package page_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/budget"
)

// desk is a desk behind a server, and what was answered.
type desk struct {
	*page.Desk
	t       *testing.T
	url     string
	answers chan string
}

func newDesk(t *testing.T, limit int) *desk {
	d := &desk{t: t, answers: make(chan string, 16)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	d.url = server.URL + "/questions"
	base, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	d.Desk = page.New(base, limit, "")
	return d
}

func (d *desk) ask(q page.Question) string {
	d.t.Helper()
	if q.Form.Fields == nil && q.URL == "" && q.Preview == "" {
		f, err := form.Parse([]byte(schema))
		if err != nil {
			d.t.Fatal(err)
		}
		q.Form = f
	}
	q.Answer = func(result []byte) { d.answers <- string(result) }
	link, err := d.Ask(q)
	if err != nil {
		d.t.Fatal(err)
	}
	return link
}

// answered returns the one answer, or "" when there is none.
func (d *desk) answered() string {
	select {
	case a := <-d.answers:
		return a
	default:
		return ""
	}
}

// browser is a client with cookies, as a person has it.
func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func fetch(t *testing.T, c *http.Client, req *http.Request) (int, string, http.Header) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func get(t *testing.T, c *http.Client, link string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Dest", "document") // as browsers say it of a page
	status, body, _ := fetch(t, c, req)
	return status, body
}

var hidden = regexp.MustCompile(`name="guard" value="([^"]*)"`)

// post submits a question's form as its page would: the guard first, the button last.
func post(t *testing.T, c *http.Client, link, guard, fields, action string, header ...string) (int, string) {
	t.Helper()
	body := "guard=" + guard + "&" + fields + "&action=" + action
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	status, page, _ := fetch(t, c, req)
	return status, page
}

func guardOf(t *testing.T, c *http.Client, link string) string {
	t.Helper()
	status, body := get(t, c, link)
	found := hidden.FindStringSubmatch(body)
	if status != http.StatusOK || found == nil {
		t.Fatalf("%d %s", status, body)
	}
	return found[1]
}

// Who knows a link may submit long forms again and again: what they take is charged to the session
// that asks. A short answer is taken as long as there is any memory.
func TestFormsAreChargedToWhoAsks(t *testing.T) {
	d, memory := newDesk(t, 8), budget.New(8<<20)
	link := d.ask(page.Question{Account: memory.Guest("asks")})
	submit := func(size int) int {
		body := "name=" + strings.Repeat("x", size)
		resp, err := http.Post(link, "application/x-www-form-urlencoded", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := submit(500 << 10); got != http.StatusForbidden { // it is read, and has no cookie
		t.Errorf("a long form gets %d", got)
	}
	memory.Guest("asks").Charge(4 << 20)
	if got := submit(500 << 10); got != http.StatusServiceUnavailable {
		t.Errorf("without memory a long form gets %d", got)
	}
	if got := submit(100); got != http.StatusForbidden {
		t.Errorf("a short one gets %d", got)
	}
	if used := memory.Used(); used != 4<<20 {
		t.Errorf("%d bytes are still charged", used-4<<20)
	}
}
