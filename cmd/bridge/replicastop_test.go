package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestReplicasCancelWhatAStoppingOneHasLeft: the one that had the call is still there, for
// another one, and must not take the cancellation for it.
func TestReplicasCancelWhatAStoppingOneHasLeft(t *testing.T) {
	f := newTrio(t, "--timeouts.drain", "30s")
	f.open()
	f.asker.hold = make(chan struct{})
	running := f.on[0].follow(f.on[0].request(http.MethodPost, strings.Replace(callAsk, `"call"`, `"running"`, 1)))
	f.on[0].answer(fmt.Sprint(running.message()["id"]))
	<-f.asker.arrived
	stream, id := f.ask(0)
	f.signal(0, syscall.SIGTERM)
	for {
		if _, err := stream.d.Next(); err != nil {
			break // it was left
		}
	}
	f.wantStatus(1, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`, http.StatusAccepted)
	f.on[2].answer(id)
	close(f.asker.hold)
	if end := running.message(); end["id"] != "running" || !strings.Contains(fmt.Sprint(end["result"]), "done") {
		t.Errorf("the running call ends with %v", end)
	}
	wantRounds(t, f.asker, 1) // of the running call
}

// TestReplicasHandRequestsOnWhileTheyStop: a balancer that has not noticed loses nothing,
// and is told to use the connection no more.
func TestReplicasHandRequestsOnWhileTheyStop(t *testing.T) {
	f := newTrio(t, "--timeouts.drain", "30s")
	f.open()
	f.asker.hold = make(chan struct{})
	running := f.on[0].follow(f.on[0].request(http.MethodPost, strings.Replace(callAsk, `"call"`, `"running"`, 1)))
	f.on[0].answer(fmt.Sprint(running.message()["id"]))
	<-f.asker.arrived
	f.signal(0, syscall.SIGTERM)
	f.notReady(0)
	resp := f.on[0].request(http.MethodPost, listTools)
	if resp.StatusCode != http.StatusOK || !resp.Close {
		t.Errorf("a call answers %s, the connection ends: %v", resp.Status, resp.Close)
	}
	newcomer := &killable{t: t, url: f.on[0].url}
	if resp := newcomer.request(http.MethodPost, initializeAsking); resp.StatusCode != http.StatusOK || resp.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("a newcomer gets %s", resp.Status)
	}
	close(f.asker.hold)
	_ = running.message()
}

// notReady waits until a replica says that it stops.
func (f *trio) notReady(on int) {
	f.t.Helper()
	for range 10_000 {
		resp, err := client.Get(strings.TrimSuffix(f.on[on].url, "/mcp") + "/readyz") //nolint:noctx // it is bounded by the client
		if err != nil {
			f.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return
		}
	}
	f.t.Fatal("it is ready")
}
