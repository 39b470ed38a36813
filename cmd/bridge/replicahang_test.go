package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testprocess"
)

// TestReplicasTakeBackAnAnswerThatDoesNotCount: Redis hangs for longer than an answer waits, and does what it was asked when it
// goes on. Whoever has the answer next, the call goes on with that, once.
func TestReplicasTakeBackAnAnswerThatDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]int{"at the same replica": 0, "at another one": 1} {
		t.Run(name, func(t *testing.T) {
			f := newTrio(t, "--store.outage", "fail")
			f.open()
			stream, id := f.ask(0)
			f.redis.Signal(testprocess.Stop)
			t.Cleanup(func() { _ = testprocess.Send(f.redis.Pid(), testprocess.Continue) })
			f.wantStatus(0, http.MethodPost, strings.Replace(acceptedAnswer(id), "Ada", "Bob", 1), http.StatusServiceUnavailable)
			f.redis.Signal(testprocess.Continue)
			f.on[again].insist(id)
			wantDone(t, f.on[2].end(stream))
			wantRounds(t, f.asker, 1)
		})
	}
}

// insist answers until that is taken.
func (k *killable) insist(id string) {
	k.t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	status := 0
	for range 100 {
		if status = k.status(http.MethodPost, acceptedAnswer(id)); status == http.StatusAccepted {
			return
		}
		<-again.C
	}
	k.t.Fatalf("the answer gets %d", status)
}
