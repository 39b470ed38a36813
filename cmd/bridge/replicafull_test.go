package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/internal/testport"
)

// TestReplicasThatShallNotWaitForTheirStore: store.outage fail. A question that cannot be kept is an
// error that says why, at once; calls without one go on, and so does everything when the store is back.
func TestReplicasThatShallNotWaitForTheirStore(t *testing.T) {
	t.Parallel()
	f := newTrio(t, "--store.outage", "fail")
	f.open()
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
	}
	stream, id := f.ask(0)
	f.redis.Kill()
	f.wantHealth(1, "degraded")
	resp := f.on[1].request(http.MethodPost, callAsk)
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), `"error"`) || !strings.Contains(string(body), "could not keep the call") {
		t.Errorf("a question gets %v, %s", err, body)
	}
	f.wantStatus(1, http.MethodPost, listTools, http.StatusOK)
	f.redis.Restart()
	for i := range f.on {
		f.wantHealth(i, "ready")
	}
	f.on[2].answer(id) // to what was kept before
	wantDone(t, stream.message())
	later, id := f.ask(1)
	f.on[0].answer(id)
	wantDone(t, later.message())
	wantRounds(t, f.asker, 2)
}

// TestCallsAreCancelledWhileTheirQuestionWaitsForTheStore: at once, since nothing was asked yet.
func TestCallsAreCancelledWhileTheirQuestionWaitsForTheStore(t *testing.T) {
	t.Parallel()
	f := newTrio(t, "--timeouts.keep-alive", "1s")
	f.open()
	f.wantStatus(1, http.MethodPost, listTools, http.StatusOK)
	f.redis.Kill()
	f.wantHealth(1, "degraded")
	late := f.on[1].request(http.MethodPost, callAsk) // its question waits
	f.wantStatus(1, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`, http.StatusAccepted)
	body, err := io.ReadAll(late.Body)
	if err != nil || strings.Contains(string(body), "data: {") {
		t.Errorf("the cancelled call gets %v, %s", err, body)
	}
}

// TestReplicasWithARedisThatEvicts: sessions that it dropped for want of memory ended, with the calls in
// them, and nothing is made up; when there is room, new ones are as good as ever.
func TestReplicasWithARedisThatEvicts(t *testing.T) {
	f := newTrio(t)
	f.open()
	f.ask(0)
	f.redis.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	f.redis.Must("CONFIG", "SET", "maxmemory", "1")
	evicted := func() bool { return strings.Contains(f.redis.Text("INFO", "stats"), "evicted_keys:0\r") }
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for f.redis.Do("DBSIZE") != ":0" {
		<-look.C // leases are written again and again, until nothing fits
	}
	if evicted() {
		t.Fatal("nothing was evicted")
	}
	f.redis.Must("CONFIG", "SET", "maxmemory", "0")
	for i := range f.on {
		f.wantHealth(i, "ready")
		for f.on[i].status(http.MethodPost, listTools) != http.StatusNotFound {
			<-look.C // whoever has a copy of the session is told by Redis that it is gone, in its own time
		}
		f.on[i].session = ""
	}
	f.open()
	stream, id := f.ask(1)
	f.on[2].answer(id)
	wantDone(t, stream.message())
}

// TestReplicasServePlainCallsWhereTheyComeIn: with three replicas and no affinity, a call that asks nothing
// takes no connection between replicas, and an answer that comes in elsewhere does.
func TestReplicasServePlainCallsWhereTheyComeIn(t *testing.T) {
	redis := redistest.Start(t)
	a := newAsker(t)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	f := &trio{t: t, redis: redis, asker: a}
	keys := keyFile(t)
	var handedOn atomic.Int32
	for i := range f.on {
		listen, err := testport.Free()
		if err != nil {
			t.Fatal(err)
		}
		f.on[i] = launch(t, "--upstream", server.URL, "--store.url", "redis://"+redis.Addr(), "--store.keys", keys,
			"--replica.listen", listen, "--replica.address", counted(t, listen, &handedOn))
	}
	f.open()
	k := f.behind()
	k.session = f.on[0].session
	for range 60 {
		if status := k.status(http.MethodPost, listTools); status != http.StatusOK {
			t.Fatalf("a plain call gets %d", status)
		}
		if text, _ := io.ReadAll(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Body); !strings.Contains(string(text), "result") {
			t.Fatalf("a ping gets %s", text)
		}
	}
	if n := handedOn.Load(); n > 0 {
		t.Errorf("120 plain calls took %d connections between replicas", n)
	}
	stream, id := f.ask(0)
	f.on[1].answer(id)
	wantDone(t, stream.message())
	if handedOn.Load() == 0 {
		t.Error("an answer was not counted that went on to another replica")
	}
}

// counted returns an address that leads to another, and counts connections.
func counted(t *testing.T, to string, n *atomic.Int32) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			go func() { _, _ = io.Copy(there, from); _ = there.Close() }()
			go func() { _, _ = io.Copy(from, there); _ = from.Close() }()
		}
	}()
	return l.Addr().String()
}
