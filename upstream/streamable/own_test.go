package streamable

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// What comes in answer to calls of the bridge's own is charged to it while it comes, and refused
// without memory.
func TestWhatTheBridgeAsksItselfIsCharged(t *testing.T) {
	memory := budget.New(4 << 20)
	half := make(chan struct{})
	whole := sync.OnceFunc(func() { close(half) })
	defer whole()
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(g.msg.ID) + `,"result":{"x":"` + strings.Repeat("x", 1<<20)))
		_ = http.NewResponseController(w).Flush()
		<-half
		_, _ = w.Write([]byte(`"}}`))
	})
	own := memory.Own()
	c := newClient(t, p.URL, Options{Account: own})
	ask := call(mcp.MethodDiscover, "")
	done := make(chan error, 1)
	go func() { _, err := c.Do(t.Context(), ask, nil); done <- err }()
	for late := time.After(20 * time.Second); memory.Used() < 1<<20; runtime.Gosched() {
		select {
		case <-late:
			t.Fatalf("%d bytes are charged", memory.Used())
		default:
		}
	}
	whole()
	if err := <-done; err != nil || memory.Used() != 0 {
		t.Errorf("%v, and %d bytes are still charged", err, memory.Used())
	}
	memory.Guest("somebody").Charge(3 << 20)
	_, err := c.Do(t.Context(), ask, nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.NoMemory || !budget.Short(f) {
		t.Errorf("without memory: %v", err)
	}
}
