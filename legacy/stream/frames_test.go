package stream

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// TestWhatIsLongIsNotCopiedForEachClient: one that comes back for a result of 15 MiB, again and again, and reads nothing, would have the bridge
// hold as many copies.
func TestWhatIsLongIsNotCopiedForEachClient(t *testing.T) {
	text := []byte(strings.Repeat("x", 4*web.WritePart))
	w := httptest.NewRecorder()
	w.Body.Grow(2 * len(text))
	e := NewEndpoint(Options{WriteTimeout: time.Minute, Gate: gate.New()})
	c := e.newResponse(w, sessions.NewVolatileStream(sessions.Limits{}), nil, downstream.Term{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.Write(1, 1, text)
	err := c.Flush(true)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > uint64(len(text)/2) {
		t.Errorf("%v, %d bytes were allocated for an event of %d", err, took, len(text))
	}
	if got := w.Body.String(); got != "event: message\ndata: "+string(text)+"\n\n" {
		t.Errorf("%d bytes came", len(got))
	}
}
