package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/budget"
)

// taker is who takes a page: until it has it whole, the page is charged.
type taker struct {
	*httptest.ResponseRecorder
	memory *budget.Budget
	charge int64
}

func (w *taker) Write(b []byte) (int, error) {
	w.charge = w.memory.Used()
	return w.ResponseRecorder.Write(b)
}

func (d *desk) take(memory *budget.Budget, link string) *taker {
	w, r := &taker{ResponseRecorder: httptest.NewRecorder(), memory: memory}, httptest.NewRequest(http.MethodGet, link, nil)
	r.AddCookie(&http.Cookie{Name: "mcp-bridge-browser", Value: "ada"})
	d.ServeHTTP(w, r)
	return w
}

func parsed(t *testing.T, schema string) form.Form {
	t.Helper()
	f, err := form.Parse([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// large are questions whose pages are much longer than what the server sent.
func large(t *testing.T) map[string]page.Question {
	var options, fields strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&options, `,"%d"`, i)
	}
	for i := range 200 {
		fmt.Fprintf(&fields, `,"%d":{"type":"string","description":"%s","minLength":1}`, i, strings.Repeat("'", 500))
	}
	return map[string]page.Question{
		"a default": {Form: parsed(t, `{"properties":{"text":{"type":"string","default":"`+strings.Repeat("<", 100_000)+`"}}}`)},
		"a message": {Message: strings.Repeat("+", 10_000)},
		"a preview": {Preview: strings.Repeat("&", 100_000)},
		"options":   {Form: parsed(t, `{"properties":{"`+strings.Repeat("n", 2000)+`":{"type":"array","items":{"type":"string","enum":[`+options.String()[1:]+`]}}}}`)},
		"fields":    {Form: parsed(t, `{"properties":{`+fields.String()[1:]+`}}`)},
	}
}

// A browser may take as long as it likes for a page, and ask for it again and again.
func TestPagesAreChargedToWhoAsks(t *testing.T) {
	memory := budget.New(256 << 20)
	d := newDesk(t, 100)
	for name, q := range large(t) {
		q.Account = memory.Guest("asks")
		w := d.take(memory, d.ask(q))
		if size := int64(w.Body.Len()); w.Code != http.StatusOK || size < 40_000 || w.charge < size || w.charge > 4*size {
			t.Errorf("%s: %d, and %d bytes are charged for %d", name, w.Code, w.charge, size)
		}
	}
	var link string
	for range 50 {
		link = d.ask(page.Question{Message: strings.Repeat(`"`, 400), Owner: "ada", Account: memory.Guest("asks")})
	}
	of := inboxLink.FindStringSubmatch(d.take(memory, link).Body.String())
	if w := d.take(memory, of[1]); w.Code != http.StatusOK || strings.Count(w.Body.String(), "/q/") != 50 || w.charge < int64(w.Body.Len()) {
		t.Errorf("the inbox: %d, and %d bytes are charged for %d", w.Code, w.charge, w.Body.Len())
	}
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}

// A large page is refused to who holds too much; a small one may bring the answer that ends that.
func TestWithoutMemoryLargePagesAreNotDrawn(t *testing.T) {
	memory := budget.New(8 << 20)
	d := newDesk(t, 100)
	account := memory.Guest("asks")
	account.Charge(5 << 20)
	for name, q := range large(t) {
		q.Account = account
		if w := d.take(memory, d.ask(q)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d, of %d bytes", name, w.Code, w.Body.Len())
		}
	}
	if w := d.take(memory, d.ask(page.Question{Account: account})); w.Code != http.StatusOK {
		t.Errorf("a small one: %d", w.Code)
	}
}
