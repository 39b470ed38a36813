package page_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/ask/page"
)

// What became of a question is remembered; the form that said so is not.
func TestAnEndedQuestionKeepsNothingOfItsForm(t *testing.T) {
	const answers, size = 24, 1_000_000
	d, c := newDesk(t, answers), browser(t)
	before := alive()
	for range answers {
		link := d.ask(page.Question{Server: "Flights"})
		if status, body := post(t, c, link, guardOf(t, c, link), "f0=Ada&more="+strings.Repeat("x", size), "accept"); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		_ = d.answered()
	}
	if more := alive() - before; more > answers*size/4 {
		t.Errorf("%d bytes stay in memory of %d answers", more, answers)
	}
	runtime.KeepAlive(d)
}

// alive is how much memory the process uses, in bytes.
func alive() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools have put aside, too
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
