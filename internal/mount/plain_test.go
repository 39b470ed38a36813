package mount

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/bridge/legacy"
)

// plain is a client that shows what comes in its order: SDKs may see the end of a connection
// before what came ahead of it.
type plain struct {
	t     *testing.T
	tell  func(line string)
	lines chan string // closed with its session
}

func (p plain) next() string {
	p.t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-patience(p.t).Done():
		p.t.Fatal("nothing comes")
		return ""
	}
}

// ends waits until a client has learnt that its session is gone. What it asks may be the proof.
func (p plain) ends() {
	p.t.Helper()
	for ctx := patience(p.t); ; {
		p.tell(`{"jsonrpc":"2.0","id":"e","method":"tools/list"}`)
		select {
		case _, goesOn := <-p.lines:
			if !goesOn {
				return
			}
		case <-ctx.Done():
			p.t.Fatal("its session never ends")
		}
	}
}

func (p plain) open(caps string) {
	p.t.Helper()
	p.tell(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":` + caps + `,"clientInfo":{"name":"c","version":"1"}}}`)
	if got := p.next(); !strings.Contains(got, `"result"`) {
		p.t.Fatalf("initialize is answered %q", got)
	}
	p.tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// data hands on what the events of a stream say, or what is said without any.
func data(to chan<- string, body io.Reader) {
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if text := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "/") {
			to <- text
		}
	}
}

// hearing is data until the end of a connection, which is that of the session.
func hearing(to chan<- string, body io.Reader) {
	defer close(to)
	data(to, body)
}

// plainly is the transports of ways, each as such a client of a mount.
var plainly = map[string]func(t *testing.T, m *Mount, base string) plain{
	"Streamable HTTP": func(t *testing.T, _ *Mount, base string) plain {
		p, session, gone := plain{t: t, lines: make(chan string, 16)}, "", new(sync.Once)
		var posts sync.WaitGroup
		t.Cleanup(posts.Wait)
		p.tell = func(line string) {
			send := func(ctx context.Context, id string) {
				resp, err := wire.Do(request(t, http.MethodPost, base+"/mcp", id, line).WithContext(ctx))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if session == "" {
					session = resp.Header.Get("Mcp-Session-Id")
				}
				if resp.StatusCode == http.StatusNotFound && strings.Contains(line, `"e"`) {
					gone.Do(func() { close(p.lines) })
					return
				}
				data(p.lines, resp.Body)
			}
			if session == "" || !strings.Contains(line, `"wait"`) && !strings.Contains(line, `"greet"`) {
				send(patience(t), session)
				return
			}
			ctx := patience(t)
			posts.Go(func() { send(ctx, session) })
		}
		return p
	},
	"HTTP+SSE": func(t *testing.T, _ *Mount, base string) plain {
		p := plain{t: t, lines: make(chan string, 16)}
		resp, err := wire.Do(request(t, http.MethodGet, base+"/sse", "", ""))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		go hearing(p.lines, resp.Body)
		messages := base + p.next()
		p.tell = func(line string) { _, _ = send(t, http.MethodPost, messages, "", line) }
		return p
	},
	"WebSocket": func(t *testing.T, _ *Mount, base string) plain {
		p := plain{t: t, lines: make(chan string, 16)}
		conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(base, "http")+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		t.Cleanup(func() { _ = conn.Close() })
		go func(to chan<- string) {
			defer close(to)
			for _, frame, err := conn.ReadMessage(); err == nil; _, frame, err = conn.ReadMessage() {
				to <- string(frame)
			}
		}(p.lines)
		p.tell = func(line string) { _ = conn.WriteMessage(websocket.TextMessage, []byte(line)) }
		return p
	},
	"stdio": func(t *testing.T, m *Mount, _ string) plain {
		p := plain{t: t, lines: make(chan string, 16)}
		in, write := io.Pipe()
		read, out := io.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = legacy.ServeStdio(t.Context(), in, out, legacy.Options{}, m.Backend)
			_ = out.Close()
			_ = in.Close()
		}()
		t.Cleanup(func() { _ = write.Close(); _, _ = io.Copy(io.Discard, read); <-served })
		go hearing(p.lines, read)
		p.tell = func(line string) { _, _ = io.WriteString(write, line+"\n") }
		return p
	},
}
