package page_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/budget"
)

// TestAnAddressNamesItsDesk: of several desks under one base, the links of each tell whose they are.
func TestAnAddressNamesItsDesk(t *testing.T) {
	base := &url.URL{Scheme: "http", Host: "bridge.test", Path: "/some-questions"}
	for _, mark := range []string{"", "0a1b2c3d"} {
		link, err := page.New(base, 1, mark).Ask(page.Question{})
		if err != nil {
			t.Fatal(err)
		}
		if got := page.MarkOf(strings.TrimPrefix(link, "http://bridge.test")); got != mark {
			t.Errorf("the link of the desk %q names %q", mark, got)
		}
	}
	for _, path := range []string{"", "/", "/some-questions/", "/some-questions/style.css", "/some-questions/q/"} {
		if got := page.MarkOf(path); got != "" {
			t.Errorf("%q names %q", path, got)
		}
	}
}

// TestAFormForAnotherDeskIsBounded: whoever names a desk elsewhere may send anything.
func TestAFormForAnotherDeskIsBounded(t *testing.T) {
	d := page.New(&url.URL{Scheme: "http", Host: "bridge.test", Path: "/questions"}, 1, "")
	for size, want := range map[int]bool{100: true, 1 << 20: true, 1<<20 + 1: false} {
		for _, length := range []int64{int64(size), -1} {
			account := budget.New(64 << 20).Guest("somebody")
			held := budget.On(account)
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://bridge.test/questions/q/x", strings.NewReader(strings.Repeat("x", size)))
			r.ContentLength = length
			form, ok := d.Body(w, r, &held)
			if ok != want || ok && len(form) != size || !ok && (w.Code != http.StatusBadRequest || w.Header().Get("X-Frame-Options") == "") {
				t.Errorf("a form of %d bytes: %t, %d bytes, status %d", size, ok, len(form), w.Code)
			}
			held.Release()
		}
	}
	full := budget.On(budget.New(1 << 10).Guest("somebody"))
	w := httptest.NewRecorder()
	if _, ok := d.Body(w, httptest.NewRequest(http.MethodPost, "/questions/q/x", strings.NewReader(strings.Repeat("x", 1<<19))), &full); ok || w.Code != http.StatusServiceUnavailable {
		t.Errorf("without memory a form is %t, %d", ok, w.Code)
	}
}
