package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestOperationsShareTheirTime: what begins together shares a context, and each operation
// has its time, however long nothing was asked before.
func TestOperationsShareTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		first := k.begin(time.Now())
		time.Sleep(spellStep)
		if k.begin(time.Now()) != first {
			t.Error("operations of one second do not share a context")
		}
		time.Sleep(storeTimeout - time.Millisecond)
		if first.Err() != nil {
			t.Error("an operation that began last had less than its time")
		}
		time.Sleep(2 * time.Millisecond)
		if !errors.Is(first.Err(), context.DeadlineExceeded) {
			t.Errorf("got %v for an operation that took too long", first.Err())
		}
		if err := k.begin(time.Now()).Err(); err != nil {
			t.Errorf("the next operation begins with %v", err)
		}
	})
}
