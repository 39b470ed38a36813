package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clerk is a modern server that makes a task of each call, which asks until it is answered or cancelled.
type clerk struct {
	t    *testing.T
	told chan string // tasks/update with the answer, and tasks/cancel
}

const (
	clerkTask  = `{"resultType":"task","taskId":"t1","status":"working","ttlMs":60000,"pollIntervalMs":20}`
	clerkAsks  = `{"resultType":"complete","taskId":"t1","status":"input_required","ttlMs":60000,"pollIntervalMs":20,"inputRequests":{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`
	clerkTakes = `{"resultType":"complete"}`
)

func (c *clerk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct{ InputResponses json.RawMessage }
	}
	if err := json.Unmarshal(body, &msg); err != nil {
		c.t.Errorf("%v: %s", err, body)
	}
	w.Header().Set("Content-Type", "application/json")
	result := clerkTakes
	switch msg.Method {
	case "server/discover":
		_, _ = io.WriteString(w, strings.ReplaceAll(strings.Replace(discovered, `"tools":{}`, `"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`, 1), "ID", string(msg.ID)))
		return
	case "tools/list":
		result = `{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{"name":"ask","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = clerkTask
	case "tasks/get":
		result = clerkAsks
	case "tasks/update", "tasks/cancel":
		c.told <- msg.Method + string(msg.Params.InputResponses)
	}
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":`+result+`}`)
}

// wantTold waits until the clerk is told something.
func (c *clerk) wantTold(want string) {
	c.t.Helper()
	select {
	case got := <-c.told:
		if got != want {
			c.t.Errorf("the server is told %s, not %s", got, want)
		}
	case <-time.After(patience):
		c.t.Errorf("the server is never told %s", want)
	}
}

// tasked starts a bridge whose call waits for a task of the server's, which asks.
func tasked(t *testing.T, flags ...string) (*clerk, *killable) {
	t.Helper()
	c := &clerk{t: t, told: make(chan string, 100)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	k := launch(t, append([]string{"--upstream", server.URL}, flags...)...)
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	f := k.follow(k.request(http.MethodPost, callAsk))
	if q := f.message(); q["method"] != "elicitation/create" {
		t.Fatalf("the question is %v", q)
	}
	return c, k
}

// TestTheEndOfASessionCancelsTheTasksOfADeadProcess_G13: nobody has come for the call since.
func TestTheEndOfASessionCancelsTheTasksOfADeadProcess_G13(t *testing.T) {
	for name, flags := range durable(t) {
		t.Run(name, func(t *testing.T) {
			c, k := tasked(t, flags(t)...)
			k.again()
			if status := k.status(http.MethodDelete, ""); status != http.StatusNoContent {
				t.Errorf("DELETE gets %d", status)
			}
			c.wantTold("tasks/cancel")
		})
	}
}

// TestAnOperatorsEndOfASessionCancelsTheTasksOfADeadProcess_G13: the session is in the store alone.
func TestAnOperatorsEndOfASessionCancelsTheTasksOfADeadProcess_G13(t *testing.T) {
	c, k := tasked(t, append(durable(t)["file"](t), "--admin.listen", "unix:"+filepath.Join(t.TempDir(), "admin"), "--admin.token-file", tokenFile(t), "--admin.actions", "on")...)
	k.again()
	admin := []string{"--admin", k.flag("--admin.listen"), "--token-file", k.flag("--admin.token-file")}
	text, err := says(t, append([]string{"sessions"}, admin...)...)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^[A-Z2-7]{32}`).FindString(text)
	if text, err := says(t, append([]string{"sessions", "end", name}, admin...)...); err != nil || !strings.Contains(text, "ended "+name) {
		t.Fatalf("%v: %s", err, text)
	}
	c.wantTold("tasks/cancel")
}

// TestTheDeadlineOfACallInMemoryOutlivesItsProcess: nobody comes for it. The server gets the answer that silence is, and
// where the call's own time is over first, the task is cancelled (G-12).
func TestTheDeadlineOfACallInMemoryOutlivesItsProcess(t *testing.T) {
	silence := []string{"--timeouts.server-request", "4s"}
	whole := []string{"--timeouts.flow", "4s", "--timeouts.round", "2s", "--timeouts.server-request", "4s"}
	for name, tc := range map[string]struct {
		flags   []string
		orderly bool
		want    string
	}{
		"its question's":                    {silence, false, `tasks/update{"name":{"action":"cancel"}}`},
		"its question's, which was left":    {silence, true, `tasks/update{"name":{"action":"cancel"}}`},
		"the call's, whatever it waits for": {whole, false, "tasks/cancel"},
	} {
		for kind, flags := range durable(t) {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				flags := append(flags(t), tc.flags...)
				if kind == "redis" {
					flags = append(flags, "--replica.listen", "127.0.0.1:0")
				}
				c, k := tasked(t, flags...)
				if tc.orderly {
					_ = k.process.Process.Signal(syscall.SIGTERM)
					<-k.silent
				}
				k.again()
				c.wantTold(tc.want)
			})
		}
	}
}

// TestTheDeadlineOfACallOutlivesItsReplica: another one, which knew nothing of it, notices that the replica is gone.
func TestTheDeadlineOfACallOutlivesItsReplica(t *testing.T) {
	t.Parallel()
	flags := append(durable(t)["redis"](t), "--timeouts.server-request", "8s", "--replica.listen", "127.0.0.1:0")
	c, k := tasked(t, flags...)
	launch(t, k.args...)
	k.kill()
	c.wantTold(`tasks/update{"name":{"action":"cancel"}}`)
}

// TestTheDeadlineOfACallOutlivesTheSettingsItWasMadeUnder: its session was left to the store when timeouts.handover was
// over, and the process lives.
func TestTheDeadlineOfACallOutlivesTheSettingsItWasMadeUnder(t *testing.T) {
	t.Parallel()
	for kind, flags := range durable(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			flags := flags(t)
			if kind == "redis" {
				flags = append(flags, "--replica.listen", "127.0.0.1:0")
			}
			file := filepath.Join(t.TempDir(), "bridge.yaml")
			configure := func(sessions string) {
				if err := os.WriteFile(file, []byte("timeouts: {handover: 1s, drain: 1s, server-request: 6s}\nlimits: {sessions: "+sessions+"}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			configure("100")
			c, k := tasked(t, append(flags, "--config", file)...)
			configure("200")
			_ = k.process.Process.Signal(syscall.SIGHUP)
			c.wantTold(`tasks/update{"name":{"action":"cancel"}}`)
		})
	}
}
