package legacy

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/observe"
)

// allEnds notes how sessions end.
type allEnds struct {
	observe.Nobody
	mu   sync.Mutex
	ends []observe.Session
}

func (e *allEnds) SessionEnded(s observe.Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, s)
}

// A stop of the bridge is no broken connection: idle WebSockets end as stopped, and without an error (error.type) in the metrics.
func TestAStopIsNoBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := &allEnds{}
		h, p := servePipe(t, Options{Watch: watch}, newFake())
		const many = 20
		for range many {
			socket(t, p, "")
		}
		synctest.Wait() // until all have begun
		h.Close()
		synctest.Wait()
		broken, other := 0, 0
		for _, s := range watch.ends {
			if s.Broken {
				broken++
			}
			if s.Reason != observe.Stopped {
				other++
			}
		}
		if len(watch.ends) != many || broken+other > 0 {
			t.Errorf("of %d sessions %d ended as broken, and %d not as stopped but by %v", len(watch.ends), broken, other, watch.ends[0].Reason)
		}
	})
}
