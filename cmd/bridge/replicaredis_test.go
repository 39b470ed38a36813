package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/internal/testprocess"
)

// TestReplicasWithARedisThatIsNotItself: read-only, as after a failover that went wrong, full,
// or so slow that it says nothing. Calls without questions go on, one with a question waits.
func TestReplicasWithARedisThatIsNotItself(t *testing.T) {
	type do func(*redistest.Server)
	for name, c := range map[string]struct{ worse, better do }{
		"read-only": {func(r *redistest.Server) { r.Must("REPLICAOF", "127.0.0.1", "1") }, func(r *redistest.Server) { r.Must("REPLICAOF", "NO", "ONE") }},
		"full":      {func(r *redistest.Server) { r.Must("CONFIG", "SET", "maxmemory", "1") }, func(r *redistest.Server) { r.Must("CONFIG", "SET", "maxmemory", "0") }},
		"slow":      {func(r *redistest.Server) { r.Signal(testprocess.Stop) }, func(r *redistest.Server) { r.Signal(testprocess.Continue) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTrio(t)
			f.open()
			for i := range f.on {
				f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
			}
			stream, id := f.ask(0)
			c.worse(f.redis)
			for i := range f.on {
				f.wantHealth(i, "degraded")
				f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
			}
			late := f.on[1].request(http.MethodPost, callAsk) // its question waits
			c.better(f.redis)
			if q := f.on[1].follow(late).message(); q["method"] != "elicitation/create" {
				t.Errorf("the question that waited is %v", q)
			}
			for i := range f.on {
				f.wantHealth(i, "ready")
			}
			f.on[2].answer(id)
			wantDone(t, stream.message())
			wantRounds(t, f.asker, 1)
		})
	}
}

// TestReplicasWithARedisThatForgets: what was evicted ended; nothing of it is made up, and
// new sessions are as good as ever.
func TestReplicasWithARedisThatForgets(t *testing.T) {
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.redis.Must("FLUSHALL")
	for {
		if _, err := stream.d.Next(); err != nil {
			break // the session ended, and its call with it
		}
	}
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusNotFound)
		f.wantStatus(i, http.MethodPost, acceptedAnswer(id), http.StatusNotFound)
		f.on[i].session = ""
	}
	f.open()
	again, id := f.ask(1)
	f.on[2].answer(id)
	wantDone(t, again.message())
	if n, _ := f.asker.seen(); n != 1 {
		t.Errorf("%s: the server got %d second rounds", fmt.Sprint(id), n)
	}
}
