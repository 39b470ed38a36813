package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testprocess"
)

// TestReplicasGoOnWithoutTheirStore: calls without questions do, those with questions wait
// for it, and nobody has to be restarted when it is back.
func TestReplicasGoOnWithoutTheirStore(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
	}
	stream, id := f.ask(0)
	f.redis.Kill()
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
	}
	f.wantHealth(0, "degraded")
	answered := make(chan int)
	go func() { answered <- f.on[0].status(http.MethodPost, acceptedAnswer(id)) }()
	late := f.on[1].request(http.MethodPost, callAsk) // its question waits
	f.redis.Restart()
	if status := <-answered; status != http.StatusAccepted {
		t.Errorf("the answer gets %d", status)
	}
	wantDone(t, stream.message())
	next := f.on[1].follow(late)
	if q := next.message(); q["method"] != "elicitation/create" {
		t.Errorf("the question that waited is %v", q)
	}
	f.wantHealth(0, "ready")
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
	}
}

func acceptedAnswer(id string) string {
	return `{"jsonrpc":"2.0","id":"` + id + `","result":{"action":"accept","content":{"name":"Ada"}}}`
}

// wantHealth waits until a replica is in a state of health.
func (f *trio) wantHealth(on int, want string) {
	f.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	var body []byte
	for range 200 {
		resp, err := client.Get(strings.TrimSuffix(f.on[on].url, "/mcp") + "/readyz") //nolint:noctx // it is bounded by the client
		if err != nil {
			f.t.Fatal(err)
		}
		body, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK && strings.Contains(string(body), want) {
			return
		}
		<-look.C
	}
	f.t.Errorf("health is %s, want %s", body, want)
}

// TestReplicasFenceOneThatSlept: while it sleeps beyond its lease another goes on with its
// call; awake, it does no harm and knows better than to answer for it.
func TestReplicasFenceOneThatSlept(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.signal(0, testprocess.Stop)
	f.on[1].answer(id)
	wantDone(t, f.on[2].resume(stream.last).message())
	f.signal(0, testprocess.Continue)
	f.on[0].answer(id)
	wantDone(t, f.on[0].resume(stream.last).message())
	f.wantStatus(0, http.MethodPost, listTools, http.StatusOK)
	wantRounds(t, f.asker, 1)
}

// TestReplicasThatSleptDoNotDenyEventsOfOthers: what the client has had of the one that went
// on with its call, the one that slept has never seen.
func TestReplicasThatSleptDoNotDenyEventsOfOthers(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.signal(0, testprocess.Stop)
	f.on[1].answer(id)
	back := f.on[2].resume(stream.last)
	wantDone(t, back.message())
	f.signal(0, testprocess.Continue)
	resp := f.on[0].request(http.MethodGet, "", "Last-Event-ID", back.last)
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("one that has had all gets %s", resp.Status)
	}
}

// TestReplicasTakeAnAnswerThatWokeThem: an answer that waited in a sleeping replica's
// sockets goes to who has the call by then.
func TestReplicasTakeAnAnswerThatWokeThem(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.signal(0, testprocess.Stop)
	answered := make(chan int)
	go func() { answered <- f.on[0].status(http.MethodPost, acceptedAnswer(id)) }()
	elsewhere := f.on[2].resume(stream.last) // which takes the call over
	f.signal(0, testprocess.Continue)
	if status := <-answered; status != http.StatusAccepted {
		t.Errorf("the answer gets %d", status)
	}
	wantDone(t, elsewhere.message())
	wantRounds(t, f.asker, 1)
}

func (f *trio) signal(on int, sig syscall.Signal) {
	f.t.Helper()
	if err := f.on[on].process.Process.Signal(sig); err != nil {
		f.t.Fatal(err)
	}
	if sig == testprocess.Stop {
		f.on[on].asleep()
	}
}

// asleep waits until all threads of a stopped process have stopped, where that can be seen.
func (k *killable) asleep() {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range 1000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.process.Process.Pid))
		if err != nil || strings.Contains(string(stat), ") T ") {
			return
		}
		<-look.C
	}
}

// TestReplicasHandOverWhenTheyStop: at once, and not when the time to drain is over.
func TestReplicasHandOverWhenTheyStop(t *testing.T) {
	t.Parallel()
	f := newTrio(t, "--timeouts.drain", "10s")
	f.open()
	stream, id := f.ask(0)
	f.signal(0, syscall.SIGTERM)
	for {
		e, err := stream.d.Next()
		if err != nil {
			break // its stream ends
		}
		if len(e.Data) > 0 {
			t.Errorf("the client is told %s", e.Data)
		}
	}
	back := f.on[1].resume(stream.last)
	f.on[2].answer(id)
	wantDone(t, back.message())
	wantRounds(t, f.asker, 1)
	if err := f.on[0].process.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
