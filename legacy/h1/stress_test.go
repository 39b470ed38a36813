package h1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// moody is a handler that does what the request's header says, and answers with
// the request's body.
func moody(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	rc := http.NewResponseController(w)
	mood := r.Header.Get("Mood")
	has := func(what string) bool { return strings.Contains(mood, what) }
	if has("ask first") {
		_ = ctx.Done()
	}
	if has("unread") {
		_, _ = io.WriteString(w, "unread")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if has("ask") {
		go func() { <-ctx.Done() }()
		child, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_ = child.Err()
	}
	if has("deadline") {
		_ = rc.SetWriteDeadline(time.Now().Add(time.Minute))
	}
	if has("rest") {
		for range 100 {
			runtime.Gosched()
		}
	}
	if has("stream") {
		for len(body) > 0 {
			n := min(len(body), 700)
			_, _ = w.Write(body[:n])
			_ = rc.Flush()
			body = body[n:]
		}
		return
	}
	if has("length") {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	_, _ = w.Write(body)
}

var moods = []string{"", "", "ask", "ask first", "ask, rest", "stream", "ask, stream, rest", "length", "deadline", "deadline, stream", "unread"}

// TestManyClientsOfAllKinds has clients pipeline, dawdle, and leave at any time:
// whoever stays gets exactly its own answers.
func TestManyClientsOfAllKinds(t *testing.T) {
	s, addr := serve(t, moody)
	var clients sync.WaitGroup
	for n := range 24 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			for range 12 {
				session(t, addr, random)
			}
		})
	}
	clients.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// session is one connection of a client.
func session(t *testing.T, addr string, random *rand.Rand) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	var all strings.Builder
	var want []string
	for i := range 1 + random.IntN(8) {
		mood := moods[random.IntN(len(moods))]
		body := fmt.Sprint(i, strings.Repeat("s", random.IntN(6000)>>random.IntN(8)))
		all.WriteString(strings.Replace(post(body), "User-Agent: test", "Mood: "+mood, 1))
		if mood == "unread" {
			body = mood
		}
		want = append(want, body)
	}
	text, leaves := all.String(), random.IntN(3) == 0
	if leaves {
		text = text[:random.IntN(len(text))]
	}
	var writing sync.WaitGroup
	writing.Go(func() { dawdle(c, text, rand.New(rand.NewPCG(random.Uint64(), 1))) })
	defer writing.Wait()
	if leaves {
		writing.Wait()
		return
	}
	w := &wire{t, c, bufio.NewReader(c)}
	for i := range want {
		resp, err := http.ReadResponse(w.in, nil)
		if err != nil {
			t.Errorf("response %d: %v", i, err)
			return
		}
		if got, err := io.ReadAll(resp.Body); string(got) != want[i] || err != nil {
			t.Errorf("response %d is %.30q of %d bytes with %v, want %.30q of %d", i, got, len(got), err, want[i], len(want[i]))
			return
		}
	}
}

// dawdle writes in pieces.
func dawdle(c net.Conn, text string, random *rand.Rand) {
	for len(text) > 0 {
		n := min(len(text), 1+random.IntN(3000)>>random.IntN(10))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
}
