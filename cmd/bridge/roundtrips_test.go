package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
)

// tripCounter stands between a bridge and its Redis, and counts what goes there: what is
// written at once is one round trip.
type tripCounter struct {
	net.Listener
	trips atomic.Int64
}

func countTrips(t *testing.T, server *redistest.Server) *tripCounter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &tripCounter{Listener: l}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server.Addr())
			if err != nil {
				_ = in.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
			all.Go(func() { c.pass(in, out) })
		}
	})
	return c
}

// isItThere is what is asked on a connection that was silent for a second, whatever calls there are.
const isItThere = "*1\r\n$4\r\nPING\r\n"

// pass hands on what a bridge asks.
func (c *tripCounter) pass(in, out net.Conn) {
	defer func() { _ = out.Close() }()
	buf := make([]byte, 1<<20)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		if string(buf[:n]) != isItThere {
			c.trips.Add(1)
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return
		}
	}
}

// rests waits until the bridge has looked, a second after its start, for calls that others have left.
func (c *tripCounter) rests(t *testing.T) {
	t.Helper()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	start := c.trips.Load()
	for was, round := start, 0; was == start || was != c.trips.Load(); round++ {
		if was = c.trips.Load(); round > 100 {
			t.Fatal("it looks for nothing, or without an end")
		}
		<-look.C
	}
}

// settles waits until nobody asks for anything.
func (c *tripCounter) settles() {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for was := int64(-1); was != c.trips.Load(); {
		was = c.trips.Load()
		<-look.C
	}
}

// TestRoundTripsToAStoredSession: a plain call asks Redis nothing, a question takes one round trip before
// it leaves, one for the answer, and one at the end; how many sessions are stored makes no difference.
func TestRoundTripsToAStoredSession(t *testing.T) {
	redis := countTrips(t, redistest.Start(t))
	a := newAsker(t)
	server := httptest.NewServer(a)
	defer server.Close()
	k := launch(t, "--upstream", server.URL, "--store.url", "redis://"+redis.Addr().String(), "--store.keys", keyFile(t), "--store.unload", "0s") // else it looks once a second what is due
	redis.rests(t)
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	k.status(http.MethodPost, listTools)

	before := redis.trips.Load()
	for range 50 {
		if status := k.status(http.MethodPost, listTools); status != http.StatusOK {
			t.Fatalf("a plain call gets %d", status)
		}
	}
	if n := redis.trips.Load() - before; n != 0 {
		t.Errorf("50 plain calls took %d round trips", n)
	}
	wrong := ""
	for range 3 { // on a busy machine something may be asked once more
		k.session = ""
		k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
		if wrong = tripsOfQuestions(t, k, redis); wrong == "" {
			return
		}
	}
	t.Error(wrong)
}

// tripsOfQuestions says which question of a new session took too many round trips; "" for none.
func tripsOfQuestions(t *testing.T, k *killable, redis *tripCounter) string {
	k.status(http.MethodPost, listTools)
	for i := range 3 {
		before := redis.trips.Load()
		f := k.follow(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{}}}`))
		id := fmt.Sprint(f.message()["id"])
		asked := redis.trips.Load() - before
		k.answer(id)
		wantDone(t, f.message())
		most := int64(3)
		if i == 0 { // that the client answers such questions is written down once, beside it, in two of them (the script, and the word that its own copy is old), and heard of as another's change is
			redis.settles()
			k.status(http.MethodPost, listTools) // which hears of it, if nothing has before
			redis.settles()
			most += 3
		}
		if all := redis.trips.Load() - before; asked > 1 || all > most {
			return fmt.Sprintf("question %d took %d round trips before it left, and %d in all", i, asked, all)
		}
	}
	return ""
}
