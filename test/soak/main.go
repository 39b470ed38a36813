// Command soak opens sessions, makes calls with questions, drops connections and ends
// sessions, many thousand times over, and looks whether memory comes back.
//
//	go run ./test/soak -sessions 5000
//
// Everything is in one process, so that the heap can be measured after a collection. It
// exits with 1 when the heap is more than 5 % larger than after the warm-up, or anything
// is still charged to somebody.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

func main() {
	sessions := flag.Int("sessions", 5000, "how many sessions are opened and ended")
	clients := flag.Int("clients", 16, "how many at a time")
	flag.Parse()
	if err := run(*sessions, *clients, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// slack is what a heap may differ by whatever its size, in bytes: pools that were just
// emptied, and what was about to end.
const slack = 256 << 10

func run(sessions, clients int, out io.Writer) error {
	memory := budget.New(1 << 30)
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	m, err := mount.New(mount.Options{Upstream: streamable.Options{URL: server.URL}, Legacy: legacy.Options{Memory: memory}})
	if err != nil {
		return err
	}
	defer m.Close()
	front := httptest.NewServer(m)
	defer front.Close()
	soak(front.URL, sessions/4, clients) // so that pools and tables have their size
	before := settled(memory)
	done := soak(front.URL, sessions, clients)
	after := settled(memory)
	fmt.Fprintf(out, "%d sessions, %d calls answered, %d asked, %d dropped\n", sessions, done.answered.Load(), done.asked.Load(), done.dropped.Load())
	fmt.Fprintf(out, "heap %d KiB before, %d KiB after (%+.1f %%); resident %d KiB; %d goroutines; %d bytes charged\n",
		before>>10, after>>10, 100*(float64(after)/float64(before)-1), resident(), runtime.NumGoroutine(), memory.Used())
	switch {
	case done.wrong.Load() > 0:
		return fmt.Errorf("%d calls went wrong", done.wrong.Load())
	case memory.Used() != 0:
		return fmt.Errorf("%d bytes are still charged", memory.Used())
	case after > before+max(before/20, slack):
		return fmt.Errorf("the heap has grown from %d to %d bytes", before, after)
	}
	return nil
}

// settled returns the heap after collections, once nothing is charged any more.
func settled(memory *budget.Budget) uint64 {
	for range 500 {
		if memory.Used() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	least := ^uint64(0)
	for range 5 {
		time.Sleep(100 * time.Millisecond)
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		least = min(least, stats.HeapAlloc)
	}
	return least
}

// resident returns the resident memory of the process in KiB, 0 where it is unknown.
func resident() (kib int) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(status), "VmRSS:"); ok {
		_, _ = fmt.Sscan(rest, &kib)
	}
	return kib
}

// counts are what clients did.
type counts struct{ answered, asked, dropped, wrong atomic.Int64 }

// soak opens and ends this many sessions.
func soak(url string, sessions, clients int) *counts {
	var next atomic.Int64
	var all sync.WaitGroup
	done := &counts{}
	for range clients {
		all.Go(func() {
			tr := &http.Transport{MaxIdleConnsPerHost: 4}
			defer tr.CloseIdleConnections()
			for n := next.Add(1); n <= int64(sessions); n = next.Add(1) {
				c := &client{url: url, http: &http.Client{Transport: tr}, done: done}
				c.live(n)
			}
		})
	}
	all.Wait()
	return done
}

// client is a legacy client with one session.
type client struct {
	url, session string
	http         *http.Client
	done         *counts
}

// live is what a session does. Each third one leaves a call unanswered.
func (c *client) live(n int64) {
	resp, err := c.send(context.Background(), http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"soak","version":"1"}}}`)
	if err != nil {
		c.done.wrong.Add(1)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	c.session = resp.Header.Get("Mcp-Session-Id")
	for id := range 3 {
		c.call(id, "echo", false)
	}
	c.call(10, "ask", false)
	if n%3 == 0 {
		c.call(11, "ask", true)
	}
	if resp, err := c.send(context.Background(), http.MethodDelete, ""); err == nil {
		_ = resp.Body.Close()
	}
}

// call makes a call, answers its question, or drops the connection instead.
func (c *client) call(id int, tool string, drop bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	resp, err := c.send(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"text":"%s"}}}`,
		id, tool, strings.Repeat("t", 2000)))
	if err != nil {
		c.done.wrong.Add(1)
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case strings.Contains(line, `"elicitation/create"`) && drop:
			c.done.dropped.Add(1)
			return
		case strings.Contains(line, `"elicitation/create"`):
			c.done.asked.Add(1)
			c.answer(strings.TrimPrefix(strings.TrimSpace(line), "data: "))
		case strings.Contains(line, `"content"`):
			c.done.answered.Add(1)
			return
		}
		if err != nil {
			c.done.wrong.Add(1)
			return
		}
	}
}

func (c *client) answer(question string) {
	var q struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal([]byte(question), &q)
	resp, err := c.send(context.Background(), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"a":"b"}}}`, q.ID))
	if err == nil {
		_ = resp.Body.Close()
	}
}

func (c *client) send(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return c.http.Do(req)
}

// serve is a modern-only server with the tools echo and ask.
func serve(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string                     `json:"name"`
			Responses map[string]json.RawMessage `json:"inputResponses"`
		} `json:"params"`
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	result := `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
	switch {
	case req.Method == "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"soak","version":"1"}},"ttlMs":3600000,"cacheScope":"public"}`
	case req.Params.Name == "ask" && len(req.Params.Responses) == 0:
		result = `{"resultType":"input_required","requestState":"` + strings.Repeat("s", 4000) + `","inputRequests":{"q":{"method":"elicitation/create",` +
			`"params":{"mode":"form","message":"Well?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}}}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}
