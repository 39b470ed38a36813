package mount

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// frailServer is a server of HTTP+SSE that answers everything but calls, and can end its
// streams.
type frailServer struct {
	mu      sync.Mutex
	streams map[string]chan string // by session; closed to end one
	calls   int
}

func (s *frailServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.stream(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	msg, _ := jsonrpc.Parse(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.streams[r.URL.Query().Get("s")]
	switch {
	case stream == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case msg.Method == "initialize":
		stream <- `{"jsonrpc":"2.0","id":` + string(msg.ID) + `,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`
	case msg.Method == "tools/call":
		s.calls++
		stream <- `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`
	case msg.Kind() == jsonrpc.Request:
		stream <- `{"jsonrpc":"2.0","id":` + string(msg.ID) + `,"result":{}}`
	}
	w.WriteHeader(http.StatusAccepted)
}

func (s *frailServer) stream(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	stream, id := make(chan string, 16), strconv.Itoa(len(s.streams))
	s.streams[id] = stream
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	text := "event: endpoint\ndata: /?s=" + id
	for ok := true; ok; {
		_, _ = io.WriteString(w, text+"\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case text, ok = <-stream:
			text = "data: " + text
		case <-r.Context().Done():
			return
		}
	}
}

// end ends every stream, and returns how many calls there were.
func (s *frailServer) end() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, stream := range s.streams {
		if stream != nil {
			close(stream)
			s.streams[id] = nil
		}
	}
	return s.calls
}

// A server of HTTP+SSE loses its session with the stream: the call under way is answered,
// and not sent again; the client learns that its session is over, and may begin anew.
func TestAStreamOfAnOldServerThatEndsTakesItsSessionAlong(t *testing.T) {
	s := &frailServer{streams: map[string]chan string{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	for way, dial := range ways {
		m, base := mounted(t, over(server.URL))
		c, err := peers.Connect(patience(t), dial(t, m, base), peers.ClientOptions{Version: "2024-11-05"})
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(patience(t), &mcp.CallToolParams{Name: "hang", Meta: mcp.Meta{"progressToken": "p"}})
			done <- err
		}()
		c.WaitFor(t, patience(t), "notifications/progress", 1)
		before := s.end()
		if err := <-done; err == nil || way == "Streamable HTTP" && !strings.Contains(err.Error(), "stream has ended") {
			t.Errorf("%s: the call under way ends with %v", way, err)
		}
		if err := c.Ping(patience(t), nil); err == nil {
			t.Errorf("%s: the session goes on", way)
		}
		_ = c.Close()
		again, err := peers.Connect(patience(t), dial(t, m, base), peers.ClientOptions{Version: "2024-11-05"})
		if err != nil {
			t.Fatalf("%s: a new session: %v", way, err)
		}
		if err := again.Ping(patience(t), nil); err != nil {
			t.Errorf("%s: in a new session: %v", way, err)
		}
		_ = again.Close()
		m.Close()
		if after := s.end(); after != before {
			t.Errorf("%s: of %d calls there were %d more", way, before, after-before)
		}
	}
}

// once the server is known, a modern request gets the error that makes clients of
// both eras fall back to initialize.
func TestModernRequestsToAnOldServerAreRefusedAsALegacyServerWould_A11(t *testing.T) {
	_, url := serve(t, over(newOldServer(t)))
	agreeable(t, url, peers.ClientOptions{})
	status, body := postModern(t, url, "2026-07-28", "tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if status != http.StatusBadRequest || !strings.Contains(body, "initialize first") {
		t.Errorf("a modern request gets %d %s", status, body)
	}
}
