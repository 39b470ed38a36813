package session

import (
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// A goroutine that removes others' calls takes this one before its session has noted it.
func TestALateCallMayBeSettledAtOnce(t *testing.T) {
	account, err := budget.New(1 << 30).Open("somebody")
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{}
	k.ctx = t.Context()
	set := &Set{keeper: k}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5000 {
				s := &Session{set: set, account: account, stored: &stored{}}
				s.Later(&LateCall{Request: jsonrpc.ID("1"), Stream: 1, Asked: true, Within: time.Hour, Remove: func(func() bool) bool { return true }})
			}
		})
	}
	wg.Wait()
}
