package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/sse"
)

// token opens the bridge's listener for whoever runs it.
const token = "this program's own token"

// asking is a modern server whose only tool asks for a name, and answers with its nonce.
type asking struct{}

func (asking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Arguments      struct{ Nonce string }
			RequestState   string
			InputResponses json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &msg)
	answer := `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`
	switch {
	case msg.Method == "server/discover":
		answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"flows","version":"1"},"ttlMs":3600000,"cacheScope":"public"}}`
	case msg.Method == "tools/list":
		answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[{"name":"ask","inputSchema":{"type":"object"}}]}}`
	case msg.Method == "tools/call" && msg.Params.InputResponses == nil:
		answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":"` + msg.Params.Arguments.Nonce + `","inputRequests":{"name":{"method":` +
			`"elicitation/create","params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}`
	case msg.Method == "tools/call" && msg.Params.RequestState == msg.Params.Arguments.Nonce:
		answer = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"` + msg.Params.RequestState + `"}]}}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.ReplaceAll(answer, "ID", string(msg.ID)))
}

// world is the clients, and whoever runs the bridge.
type world struct {
	url   string
	http  *http.Client
	admin *http.Client
}

func newWorld(url, admin string, clients int) *world {
	return &world{
		url:  url,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
		admin: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", admin)
		}}},
	}
}

func (w *world) send(ctx context.Context, method, session, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return w.http.Do(r)
}

// suspend opens a session and makes calls side by side, until each has been asked and its stream has ended.
func (w *world) suspend(ctx context.Context, number, calls int) ([]flow, error) {
	resp, err := w.send(ctx, http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"flows","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		return nil, fmt.Errorf("initialize gets %s and no session", resp.Status)
	}
	type outcome struct {
		flow
		err error
	}
	ends := make(chan outcome, calls)
	for i := range calls {
		go func() {
			f := flow{session: session, nonce: fmt.Sprintf("%d-%d", number, i)}
			err := w.ask(ctx, &f, i)
			ends <- outcome{f, err}
		}()
	}
	var flows []flow
	var failed error
	for range calls {
		end := <-ends
		if failed = errors.Join(failed, end.err); end.err == nil {
			flows = append(flows, end.flow)
		}
	}
	return flows, failed
}

// ask makes a call, and reads until its stream ends with the question open.
func (w *world) ask(ctx context.Context, f *flow, id int) error {
	resp, err := w.send(ctx, http.MethodPost, f.session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","arguments":{"nonce":"%s"}}}`, id, f.nonce))
	if err != nil {
		return err
	}
	for {
		err = f.read(resp, f.asked)
		_ = resp.Body.Close()
		if err != nil || f.question != "" {
			return err
		}
		if f.last == "" {
			return fmt.Errorf("the stream of %s has ended without an event to come back to", f.nonce)
		}
		// The stream's time was over before the question came.
		if resp, err = w.send(ctx, http.MethodGet, f.session, "", "Last-Event-ID", f.last); err != nil {
			return err
		}
	}
}

// asked takes the question.
func (f *flow) asked(m *message) error {
	if m.Method != "elicitation/create" || f.question != "" {
		return fmt.Errorf("the call %s is told %s of %q", f.nonce, m.Method, m.ID)
	}
	f.question = string(m.ID)
	return nil
}

type message struct {
	ID     json.RawMessage
	Method string
	Result *struct{ Content []struct{ Text string } }
}

// read takes the messages of a stream until it ends.
func (f *flow) read(resp *http.Response, take func(*message) error) error {
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s gets %s: %s", f.nonce, resp.Status, text)
	}
	events := sse.NewDecoder(bufio.NewReader(resp.Body), 1<<20)
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.ID != "" {
			f.last = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return err
		}
		if err := take(&m); err != nil {
			return err
		}
	}
}

// answer answers a question and fetches what comes of it.
func (w *world) answer(ctx context.Context, f *flow) error {
	resp, err := w.send(ctx, http.MethodPost, f.session, `{"jsonrpc":"2.0","id":`+f.question+`,"result":{"action":"accept","content":{"name":"Ada"}}}`)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the answer to %s gets %s", f.nonce, resp.Status)
	}
	for done := false; !done; {
		resp, err := w.send(ctx, http.MethodGet, f.session, "", "Last-Event-ID", f.last)
		if err != nil {
			return err
		}
		err = f.read(resp, func(m *message) error {
			if m.Result == nil || len(m.Result.Content) != 1 || m.Result.Content[0].Text != f.nonce {
				return fmt.Errorf("the call %s ends with %+v", f.nonce, m)
			}
			done = true
			return nil
		})
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// untilForgotten waits until no call and no session is in the bridge's memory.
func (w *world) untilForgotten(ctx context.Context) error {
	left := -1
	for range 600 {
		flows, err := w.metric(ctx, "mcpbridge_flows_suspended")
		if err != nil {
			return err
		}
		sessions, err := w.metric(ctx, "mcpbridge_sessions")
		if err != nil {
			return err
		}
		if left = flows + sessions; left == 0 {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("%d calls and sessions are in memory after five minutes", left)
}

// metric is the sum of one of the bridge's metrics.
func (w *world) metric(ctx context.Context, name string) (sum int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/metrics", nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.admin.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("/metrics gets %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var n float64
		if rest, ok := strings.CutPrefix(lines.Text(), name+"{"); ok {
			_, _ = fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &n)
			sum += int(n)
		}
	}
	return sum, lines.Err()
}
