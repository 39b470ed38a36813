package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
)

const initializePolling = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`

// forgetful starts a bridge from which what waits soon goes into its store.
func forgetful(t *testing.T, a *asker, flags ...string) *killable {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	k := launch(t, append([]string{"--upstream", server.URL, "--store.unload", "250ms", "--timeouts.poll", "1s", "--timeouts.poll-pause", "100ms",
		"--admin.listen", "unix:" + filepath.Join(t.TempDir(), "admin"), "--admin.token-file", tokenFile(t)}, flags...)...)
	k.session = k.request(http.MethodPost, initializePolling).Header.Get("Mcp-Session-Id")
	return k
}

// askAndLeave makes a call and reads until its stream ends, with the question open. It returns
// the question's id, and the id of the last event.
func (k *killable) askAndLeave(id string) (question, last string) {
	k.t.Helper()
	f := k.follow(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":"`+id+`","method":"tools/call","params":{"name":"ask","arguments":{}}}`))
	question = fmt.Sprint(f.message()["id"])
	for {
		e, err := f.d.Next()
		if err != nil {
			return question, f.last
		}
		if len(e.Data) > 0 {
			k.t.Fatalf("after the question comes %s", e.Data)
		}
	}
}

func tokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a token of sixteen or more"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// flag is what the bridge was started with.
func (k *killable) flag(name string) string { return k.args[slices.Index(k.args, name)+1] }

// inMemory is what a metric of the bridge says, summed up.
func (k *killable) inMemory(metric string) (n int) {
	k.t.Helper()
	l, err := (&looking{admin: k.flag("--admin.listen"), tokenFile: k.flag("--admin.token-file")}).listener()
	if err != nil {
		k.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, l.base+"/metrics", nil)
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+l.token)
	resp, err := l.client.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		k.t.Fatalf("/metrics gets %s", resp.Status)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(text)) {
		var count float64
		if rest, ok := strings.CutPrefix(line, metric+"{"); ok {
			_, _ = fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &count)
			n += int(count)
		}
	}
	return n
}

// forgets waits until nothing is in memory.
func (k *killable) forgets() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for k.inMemory("mcpbridge_flows_suspended")+k.inMemory("mcpbridge_sessions") > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			k.t.Fatalf("%d calls and %d sessions stay in memory", k.inMemory("mcpbridge_flows_suspended"), k.inMemory("mcpbridge_sessions"))
		}
	}
}

// durable are the stores from which things come back.
func durable(t *testing.T) map[string]func(*testing.T) []string {
	return map[string]func(*testing.T) []string{
		"file": func(t *testing.T) []string {
			return []string{"--store.url", "file:" + filepath.Join(t.TempDir(), "sessions.db")}
		},
		"redis": func(t *testing.T) []string {
			return []string{"--store.url", "redis://" + redistest.Start(t).Addr(), "--store.keys", keyFile(t)}
		},
	}
}

func TestQuestionsLeaveMemoryAndSurviveThat(t *testing.T) {
	t.Parallel()
	for name, flags := range durable(t) {
		t.Run(name, func(t *testing.T) {
			a := newAsker(t)
			k := forgetful(t, a, flags(t)...)
			id, last := k.askAndLeave("call")
			k.forgets()
			k.answer(id)
			wantDone(t, k.resume(last).message())
			wantRounds(t, a, 1)
			k.answer(id) // once more: it counts for nothing
			wantRounds(t, a, 1)
		})
	}
}

// TestPollsBringNothingBack: the question is read from the store, and stays there.
func TestPollsBringNothingBack(t *testing.T) {
	t.Parallel()
	k := forgetful(t, newAsker(t), durable(t)["file"](t)...)
	id, last := k.askAndLeave("call")
	k.forgets()
	stream, _, _ := strings.Cut(last, "-")
	for range 3 {
		resp := k.request(http.MethodGet, "", "Last-Event-ID", last)
		if body, _ := io.ReadAll(resp.Body); string(body) != "id: "+last+"\ndata: \n\nretry: 100\n\n" {
			t.Errorf("a poll gets %q", body)
		}
		resp = k.request(http.MethodGet, "", "Last-Event-ID", stream+"-1")
		if body, _ := io.ReadAll(resp.Body); strings.Count(string(body), id) != 1 || !strings.HasSuffix(string(body), "retry: 100\n\n") {
			t.Errorf("one that has not had the question gets %q", body)
		}
		if n := k.inMemory("mcpbridge_flows_suspended"); n > 0 {
			t.Errorf("%d calls came back", n)
		}
	}
	if resp := k.request(http.MethodGet, "", "Last-Event-ID", stream+"-9999999999999"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an event that never was gets %s", resp.Status)
	}
}

func TestCallsInTheStoreCanBeCancelledAndEnded(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	k := forgetful(t, a, append(durable(t)["file"](t), "--timeouts.retention", "1s")...)
	id, last := k.askAndLeave("call")
	k.forgets()
	k.status(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`)
	k.answer(id)
	if body, _ := io.ReadAll(k.request(http.MethodGet, "", "Last-Event-ID", last).Body); strings.Contains(string(body), `"result"`) || strings.Contains(string(body), `"id":"call"`) {
		t.Errorf("its stream has %s", body)
	}
	id, _ = k.askAndLeave("another")
	k.forgets()
	if status := k.status(http.MethodDelete, ""); status != http.StatusNoContent {
		t.Errorf("DELETE gets %d", status)
	}
	if status := k.status(http.MethodPost, `{"jsonrpc":"2.0","id":"`+id+`","result":{"action":"decline"}}`); status != http.StatusNotFound {
		t.Errorf("an answer in the ended session gets %d", status)
	}
	if n, _ := a.seen(); n != 0 {
		t.Errorf("it went on with %d rounds", n)
	}
}

// TestDeadlinesOfCallsInTheStoreComeToo, and those that came while no bridge was there.
func TestDeadlinesOfCallsInTheStoreComeToo(t *testing.T) {
	for name, kill := range map[string]bool{"in one process": false, "in another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A call that is over before it has left memory leaves its response there: a busy machine gets time.
			k := forgetful(t, newAsker(t), append(durable(t)["file"](t), "--timeouts.flow", "10s", "--timeouts.server-request", "10s", "--timeouts.round", "2s")...)
			_, last := k.askAndLeave("call")
			k.forgets()
			if kill {
				k.again()
			}
			// It comes back by itself: nobody asks for it until it is over.
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			look := time.NewTicker(50 * time.Millisecond)
			defer look.Stop()
			for k.inMemory("mcpbridge_sessions") == 0 && ctx.Err() == nil {
				<-look.C
			}
			said := ""
			for !strings.Contains(said, `"id":"call"`) && ctx.Err() == nil { // each response ends after a second
				body, _ := io.ReadAll(k.request(http.MethodGet, "", "Last-Event-ID", last).Body)
				said = string(body)
			}
			if !strings.Contains(said, "notifications/cancelled") || !strings.Contains(said, "timeouts.flow") {
				t.Errorf("the call ends with %s", said)
			}
		})
	}
}

// TestManyQuestionsOfOneSessionAreBounded: what is in the store counts, too.
func TestManyQuestionsOfOneSessionAreBounded(t *testing.T) {
	t.Parallel()
	k := forgetful(t, newAsker(t), append(durable(t)["file"](t), "--limits.flows", "2")...)
	k.askAndLeave("a")
	k.askAndLeave("b")
	k.forgets()
	for _, id := range []string{"c", "d", "e"} {
		k.askAndLeave(id)
	}
	if n := k.inMemory("mcpbridge_flows_suspended"); n != 2 {
		t.Errorf("%d calls are in memory, and 2 in the store", n)
	}
}

// TestWhatWaitsInAStoreIsBounded: a call that has left memory still takes its part of the store.
func TestWhatWaitsInAStoreIsBounded(t *testing.T) {
	t.Parallel()
	k := forgetful(t, newAsker(t), append(durable(t)["file"](t), "--store.size", "256KiB")...)
	ask := func(n int) (question, last, refused string) {
		f := k.follow(k.request(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{"n":%d,"long":%q}}}`, n, strings.Repeat("x", 60<<10))))
		m := f.message()
		if m["method"] != "elicitation/create" {
			return "", "", fmt.Sprint(m)
		}
		for {
			if _, err := f.d.Next(); err != nil {
				return fmt.Sprint(m["id"]), f.last, ""
			}
		}
	}
	first, last, refused := ask(0)
	for n := 1; n < 5 && refused == ""; n++ {
		k.forgets()
		_, _, refused = ask(n)
	}
	if !strings.Contains(refused, "store.size") {
		t.Fatalf("a call for which there is no room gets %q", refused)
	}
	k.answer(first)
	wantDone(t, k.resume(last).message())
	if _, _, refused := ask(5); refused != "" {
		t.Errorf("when there is room again a call gets %s", refused)
	}
}
