package stdio

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestIdleOverStdio(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		var seen strings.Builder
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = w.do(t.Context(), requestOf(withMeta("a", `"progressToken":1`)), sink{
				notify: func(jsonrpc.Message) { seen.WriteByte('.') },
				idle:   func() { seen.WriteByte('|') },
			})
		}()
		id := w.receive().ID
		for range 2 {
			w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, id)
		}
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		synctest.Wait()
		<-done
		if seen.String() != ".|.|" {
			t.Errorf("%s", &seen)
		}
	})
}
