package legacy

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

// TestTheEndOfASessionIsThatOfItsCallsWhoseAnswersWereTakenBack_G13: they are in the store alone since a disk did not take an answer.
func TestTheEndOfASessionIsThatOfItsCallsWhoseAnswersWereTakenBack_G13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fencedIn(t, &shaky{Store: stored().Store, alone: true}, nil)
		f.store.away.Store(true)
		want(t, "an answer", f.answers(), downstream.ErrGone)
		f.store.away.Store(false)
		time.Sleep(5 * time.Second)
		want(t, "DELETE", f.p.do(f.p.request(http.MethodDelete, "")).StatusCode, http.StatusNoContent)
		synctest.Wait()
		want(t, "calls that the server is told of", len(f.conv.givenUp), 1)
	})
}
