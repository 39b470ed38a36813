package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/sse"
)

// asker is a modern server with tools that ask: "ask" and "repeat", of which only the
// second may be called again. It counts what it was asked to do, and can be held up.
type asker struct {
	t    *testing.T
	logs bool // it takes levels of log messages
	mu   sync.Mutex
	// hold, when set, is what the second round of a call waits for before it answers.
	hold chan struct{}
	// second counts second rounds; their answers.
	second  int
	answers []string
	arrived chan struct{}
}

const askerTools = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[` +
	`{"name":"ask","inputSchema":{"type":"object"}},{"name":"repeat","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}]}}`

func (a *asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name           string
			RequestState   string
			InputResponses map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &msg); err != nil {
		a.t.Errorf("%v: %s", err, body)
	}
	answer := `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`
	switch {
	case msg.Method == "server/discover":
		answer = discovered
		if a.logs {
			answer = strings.Replace(answer, `"tools":{}`, `"tools":{},"logging":{}`, 1)
		}
	case msg.Method == "tools/list":
		answer = askerTools
	case msg.Method == "tools/call" && msg.Params.InputResponses == nil:
		answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":"s1","inputRequests":{"name":{"method":"elicitation/create",` +
			`"params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}`
	case msg.Method == "tools/call":
		a.mu.Lock()
		a.second++
		a.answers = append(a.answers, msg.Params.RequestState+string(msg.Params.InputResponses["name"]))
		hold := a.hold
		a.mu.Unlock()
		a.arrived <- struct{}{}
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
				return
			}
		}
		answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.ReplaceAll(answer, "ID", string(msg.ID)))
}

// holds has the answers to answers wait until hold is closed.
func (a *asker) holds(hold chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold = hold
}

func (a *asker) seen() (int, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.second, strings.Join(a.answers, " ")
}

// following reads the events of a response.
type following struct {
	t    *testing.T
	d    *sse.Decoder
	resp *http.Response
	last string
}

func (k *killable) follow(resp *http.Response) *following {
	k.t.Helper()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(resp.Body)
		k.t.Fatalf("no event stream but %s: %s", resp.Status, text)
	}
	return &following{t: k.t, d: sse.NewDecoder(bufio.NewReader(resp.Body), 1<<20), resp: resp}
}

// message returns the next message and its event id.
func (f *following) message() map[string]any {
	f.t.Helper()
	for {
		e, err := f.d.Next()
		if err != nil {
			f.t.Fatalf("the stream ended: %v", err)
		}
		if e.ID != "" {
			f.last = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(e.Data, &m); err != nil {
			f.t.Fatal(err)
		}
		return m
	}
}

const initializeAsking = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`

// asking opens a session whose call has been asked its question.
func asking(t *testing.T, a *asker, tool string) (*killable, *following, string) {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	k := launch(t, "--upstream", server.URL, "--store.url", "file:"+filepath.Join(t.TempDir(), "sessions.db"))
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	k.status(http.MethodPost, listTools)
	f := k.follow(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`))
	q := f.message()
	if q["method"] != "elicitation/create" {
		t.Fatalf("the question is %v", q)
	}
	return k, f, fmt.Sprint(q["id"])
}

func newAsker(t *testing.T) *asker { return &asker{t: t, arrived: make(chan struct{}, 100)} }

func (k *killable) answer(id string) {
	k.t.Helper()
	if status := k.status(http.MethodPost, `{"jsonrpc":"2.0","id":"`+id+`","result":{"action":"accept","content":{"name":"Ada"}}}`); status != http.StatusAccepted {
		k.t.Fatalf("the answer gets %d", status)
	}
}

// resume comes back for what follows an event.
func (k *killable) resume(after string) *following {
	k.t.Helper()
	return k.follow(k.request(http.MethodGet, "", "Last-Event-ID", after))
}

func wantDone(t *testing.T, m map[string]any) {
	t.Helper()
	if text := fmt.Sprint(m["result"]); m["id"] != "call" || !strings.Contains(text, "done") {
		t.Errorf("the call ends with %v", m)
	}
}

func wantRounds(t *testing.T, a *asker, rounds int) {
	t.Helper()
	n, answers := a.seen()
	if n != rounds || !strings.Contains(answers, `s1{"action":"accept","content":{"name":"Ada"}}`) {
		t.Errorf("the server got %d second rounds, want %d: %s", n, rounds, answers)
	}
}

func TestQuestionsSurviveTheProcess(t *testing.T) {
	for _, kills := range []int{1, 3} {
		t.Run(fmt.Sprint(kills), func(t *testing.T) {
			a := newAsker(t)
			k, f, id := asking(t, a, "ask")
			for range kills {
				k.again()
			}
			k.answer(id)
			wantDone(t, k.resume(f.last).message())
			wantRounds(t, a, 1)
		})
	}
}

func TestClientsComeBackForTheirQuestionAfterAKill(t *testing.T) {
	a := newAsker(t)
	k, f, id := asking(t, a, "ask")
	stream, _, _ := strings.Cut(f.last, "-")
	k.again()
	lost := k.resume(stream + "-0") // of one that has not had the question
	q := lost.message()
	if fmt.Sprint(q["id"]) != id {
		t.Fatalf("the question comes again as %v", q)
	}
	k.again()
	had := k.resume(lost.last) // of one that has had it, from the second process
	k.answer(id)
	wantDone(t, had.message())
	wantRounds(t, a, 1)
}

// TestRoundsOfUnknownOutcome_D15: a tool that may be called again is, any other's client
// learns that nobody knows.
func TestRoundsOfUnknownOutcome_D15(t *testing.T) {
	for tool, rounds := range map[string]int{"ask": 1, "repeat": 2} {
		t.Run(tool, func(t *testing.T) {
			a := newAsker(t)
			a.hold = make(chan struct{})
			k, f, id := asking(t, a, tool)
			k.answer(id)
			<-a.arrived
			k.kill()
			close(a.hold)
			k.again()
			end := k.resume(f.last).message()
			if tool == "repeat" {
				wantDone(t, end)
			} else if text := fmt.Sprint(end); end["id"] != "call" || !strings.Contains(text, "unknown") {
				t.Errorf("the call ends with %v", end)
			}
			wantRounds(t, a, rounds)
		})
	}
}

func TestLastWordsSurviveTheProcess(t *testing.T) {
	a := newAsker(t)
	k, f, id := asking(t, a, "ask")
	k.answer(id)
	wantDone(t, f.message())
	before := f.last
	k.again()
	stream, _, _ := strings.Cut(before, "-")
	wantDone(t, k.resume(stream+"-1").message())
	wantRounds(t, a, 1)
	if resp := k.request(http.MethodGet, "", "Last-Event-ID", before); resp.StatusCode != http.StatusNoContent {
		t.Errorf("one that has had all gets %s", resp.Status)
	}
}

// TestOrderlyStopKeepsQuestions: nobody is told that a call failed which goes on.
func TestOrderlyStopKeepsQuestions(t *testing.T) {
	a := newAsker(t)
	server := httptest.NewServer(a)
	defer server.Close()
	args := []string{"serve", "--listen=127.0.0.1:0", "--upstream", server.URL, "--timeouts.drain=100ms", "--store.url", "file:" + filepath.Join(t.TempDir(), "sessions.db")}
	p := start(t, args...)
	k := &killable{t: t, url: "http://" + p.address + "/mcp"}
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	f := k.follow(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{}}}`))
	id := fmt.Sprint(f.message()["id"])
	p.stop()
	if e, err := f.d.Next(); err == nil && len(e.Data) > 0 {
		t.Errorf("the client is told %s", e.Data)
	}
	if err := p.wait(); err != nil {
		t.Error(err)
	}
	k.url = "http://" + start(t, args...).address + "/mcp"
	k.answer(id)
	wantDone(t, k.resume(f.last).message())
	wantRounds(t, a, 1)
}

func TestCancelledCallsDoNotComeBack(t *testing.T) {
	a := newAsker(t)
	k, f, id := asking(t, a, "ask")
	k.status(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`)
	k.again()
	k.answer(id)
	if resp := k.request(http.MethodGet, "", "Last-Event-ID", f.last); resp.StatusCode == http.StatusOK {
		t.Error("its stream is there")
	}
	if n, _ := a.seen(); n != 0 {
		t.Errorf("it went on with %d rounds", n)
	}
}
