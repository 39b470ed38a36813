package mount

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// slowServer answers a call when its test says so.
type slowServer struct {
	announcer
	begun chan string   // names of tools, as they are called
	goOn  chan struct{} // one value lets one call end
}

func newSlowServer() *slowServer {
	return &slowServer{begun: make(chan string, 100), goOn: make(chan struct{})}
}

func (s *slowServer) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Method != mcp.MethodToolsCall {
		return s.announcer.Do(ctx, call, notify)
	}
	name, _ := rawjson.Text(rawjson.Get(call.Params, "name"))
	s.begun <- name
	select {
	case <-s.goOn:
		return &upstream.Answer{Result: []byte(`{"resultType":"complete","content":[]}`)}, nil
	case <-ctx.Done():
		return nil, &upstream.Failure{Cause: upstream.Lost}
	}
}

// serveAddresses is serve for clients that say in the query which address and which token
// they have.
func serveAddresses(t *testing.T, opt Options) (base string) {
	t.Helper()
	m, _ := serve(t, opt)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		r.RemoteAddr = q.Get("from") + ":1"
		if as := q.Get("as"); as != "" {
			r.Header.Set("Authorization", "Bearer "+as)
		}
		m.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { m.Close(); front.CloseClientConnections(); front.Close() })
	return front.URL
}

// Work is admitted by session and by address: who floods the server with calls, over however many
// connections and sessions, holds up itself. Tokens that somebody makes up change nothing.
func TestAFloodOfCallsHoldsUpItselfOnly(t *testing.T) {
	for name, as := range map[string]func(int) string{
		"nobody in particular": func(int) string { return "" },
		"many made-up tokens":  func(i int) string { return fmt.Sprint("&as=made-up-", i) },
	} {
		t.Run(name, func(t *testing.T) { flood(t, as) })
	}
}

func flood(t *testing.T, as func(int) string) {
	server := newSlowServer()
	base := serveAddresses(t, Options{Caller: server, Concurrency: 4})
	here, there := base+"?from=192.0.2.1", base+"?from=192.0.2.2"
	modest, _ := initialize(t, there, "2025-11-25", `{}`)
	answers := make(chan string)
	send := func(base, session, tool string) {
		go func() { _, body := post(t, base, session, call(tool)); answers <- body }()
	}
	for i := range 10 {
		here := here + as(i)
		greedy, _ := initialize(t, here, "2025-11-25", `{}`)
		send(here, greedy, "flood")
		send(here, greedy, "flood")
	}
	for range 2 {
		if got := <-server.begun; got != "flood" {
			t.Error(got)
		}
	}
	send(there, modest, "small")
	if got := <-server.begun; got != "small" {
		t.Errorf("%s was called before the call of the session that has none under way", got)
	}
	for range 21 {
		server.goOn <- struct{}{}
		if body := <-answers; !strings.Contains(body, `"content":[]`) {
			t.Errorf("a call failed: %s", body)
		}
	}
}

// choosy is a server that serves only who brings a good token.
type choosy struct{ *slowServer }

func (g choosy) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if !strings.HasPrefix(call.Authorization, "Bearer good") {
		return nil, &upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized}
	}
	return g.slowServer.Do(ctx, call, notify)
}

// Whom the server accepts where it refuses others has turns of its own, wherever it comes from.
func TestWhoIsVouchedForHasTurnsOfItsOwn(t *testing.T) {
	server := choosy{newSlowServer()}
	base := serveAddresses(t, Options{Caller: server, Concurrency: 4}) + "?from=192.0.2.1"
	if session, body := initialize(t, base+"&as=bad", "2025-11-25", `{}`); session != "" {
		t.Fatalf("a bad token opened a session: %s", body)
	}
	here, there := base+"&as=good-greedy", base+"&as=good-modest"
	answers := make(chan string)
	send := func(base, session, tool string) {
		go func() { _, body := post(t, base, session, call(tool)); answers <- body }()
	}
	modest, _ := initialize(t, there, "2025-11-25", `{}`)
	for range 10 {
		greedy, _ := initialize(t, here, "2025-11-25", `{}`)
		send(here, greedy, "flood")
	}
	for range 2 {
		<-server.begun
	}
	send(there, modest, "small")
	if got := <-server.begun; got != "small" {
		t.Errorf("%s was called before the call of somebody else", got)
	}
	for range 11 {
		server.goOn <- struct{}{}
		<-answers
	}
}

// What is relayed has its turn, too, until the server has begun to answer: then a person
// may be asked. Answers and notifications wait for nobody.
func TestRelayedRequestsTakeTurnsToo(t *testing.T) {
	begun, goOn := make(chan string, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		msg, _ := jsonrpc.Parse(body)
		w.Header().Set("Content-Type", "application/json")
		switch msg.Method {
		case mcp.MethodInitialize:
			w.Header().Set("Mcp-Session-Id", "s")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, msg.ID)
		case mcp.MethodToolsCall:
			name, _ := rawjson.Text(rawjson.Get(msg.Params, "name"))
			begun <- name
			if name == "asks" { // it has begun to answer, and goes on when a person has
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-goOn:
			case <-r.Context().Done(): // the test has failed
			}
			_, _ = io.WriteString(w, `{"content":[]}`)
		case "", mcp.NotificationInitialized:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	opt := over(server.URL)
	opt.Concurrency = 2
	base := serveAddresses(t, opt)
	here, there := base+"?from=192.0.2.1", base+"?from=192.0.2.2"
	session, _ := initialize(t, here, "2025-06-18", `{}`)
	answers := make(chan string)
	send := func(base, tool string) {
		go func() { _, body := post(t, base, session, call(tool)); answers <- body }()
		if tool != "waits" {
			if got := <-begun; got != tool {
				t.Errorf("%s was called, not %s", got, tool)
			}
		}
	}
	for range 5 {
		send(here, "asks")
	}
	send(here, "works")
	for range 3 {
		send(here, "waits")
	}
	send(there, "small")
	if status, _ := post(t, here, session, `{"jsonrpc":"2.0","id":"q","result":{}}`); status != http.StatusAccepted {
		t.Errorf("an answer waits for a turn, or was refused: %d", status)
	}
	close(goOn)
	for range 10 {
		if body := <-answers; !strings.Contains(body, `"content":[]`) {
			t.Errorf("a call failed: %s", body)
		}
	}
}

// Nothing is executed for who has left while it waited.
func TestCallsOfClientsThatLeftWhileTheyWaitedAreNotExecuted(t *testing.T) {
	server := newSlowServer()
	m, err := New(Options{Caller: server, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(m)
	front.Config.ConnContext = quiet.ConnContext // tells who has left
	front.Start()
	t.Cleanup(func() { m.Close(); front.CloseClientConnections(); front.Close() })
	session, _ := initialize(t, front.URL, "2025-11-25", `{}`)
	first := make(chan string)
	go func() { _, body := post(t, front.URL, session, call("first")); first <- body }()
	if got := <-server.begun; got != "first" {
		t.Error(got)
	}
	at, _ := url.Parse(front.URL)
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	body := call("left")
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", at.Host, session, len(body), body)
	waits := func(n int) {
		t.Helper()
		for ticks := time.Tick(time.Millisecond); flows(m) != n; <-ticks {
			if t.Context().Err() != nil {
				t.Fatal("it never came")
			}
		}
	}
	waits(2)
	_ = conn.Close()
	third := make(chan string)
	go func() { _, body := post(t, front.URL, session, call("third")); third <- body }()
	waits(3)
	server.goOn <- struct{}{}
	if got := <-server.begun; got != "third" {
		t.Errorf("%s was executed", got)
	}
	server.goOn <- struct{}{}
	for _, answer := range []chan string{first, third} {
		if body := <-answer; !strings.Contains(body, `"content":[]`) {
			t.Errorf("a call failed: %s", body)
		}
	}
}

// flows returns how many calls there are.
func flows(m *Mount) (n int) {
	for _, s := range m.Look() {
		n += len(s.Flows)
	}
	return n
}
