package mount

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// heldServer holds requests of one method until its test has seen who else came.
type heldServer struct {
	announcer
	method string
	begun  chan string   // tokens, as their requests come
	goOn   chan struct{} // closed: all are answered
}

func newHeldServer(method string) *heldServer {
	return &heldServer{method: method, begun: make(chan string, 1000), goOn: make(chan struct{})}
}

func (s *heldServer) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Method == s.method {
		s.begun <- strings.TrimPrefix(call.Authorization, "Bearer ")
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return nil, &upstream.Failure{Cause: upstream.Lost, Sent: true}
		}
	}
	switch call.Method {
	case mcp.MethodToolsCall:
		return &upstream.Answer{Result: []byte(`{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":1}`)}, nil
	case mcp.MethodTasksGet:
		return &upstream.Answer{Result: []byte(`{"resultType":"complete","taskId":"t","status":"completed","result":{"content":[]}}`)}, nil
	case mcp.MethodDiscover:
		return &upstream.Answer{Result: []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)}, nil
	}
	return s.announcer.Do(ctx, call, notify)
}

// expect fails unless exactly these come, as far as anybody can see.
func (s *heldServer) expect(t *testing.T, floods int, modest string) {
	t.Helper()
	for range floods {
		if got := <-s.begun; !strings.HasPrefix(got, "made-up") {
			t.Errorf("%q came before %d of the flood", got, floods)
		}
	}
	if got := <-s.begun; got != modest {
		t.Errorf("%q came before %q, which has nothing under way", got, modest)
	}
	if more := len(s.begun); more > 0 {
		t.Errorf("%d more came", more)
	}
}

// What the bridge asks a server for a session that is opened takes a turn: made-up tokens, each
// of which it asks with, are one client, whose sessions wait while it is asked for somebody else.
func TestSessionsThatAreOpenedTakeTurns(t *testing.T) {
	server := newHeldServer(mcp.MethodDiscover)
	base := serveAddresses(t, Options{Caller: server, Concurrency: 4 * briefShare})
	answers := make(chan string)
	open := func(from, as string) {
		go func() {
			session, _ := initialize(t, base+"?from="+from+"&as="+as, "2025-11-25", `{}`)
			answers <- session
		}()
	}
	for i := range 20 {
		open("192.0.2.1", fmt.Sprint("made-up-", i))
	}
	first, second := <-server.begun, <-server.begun
	server.begun <- first
	server.begun <- second
	open("192.0.2.2", "modest")
	server.expect(t, 2, "modest")
	close(server.goOn)
	for range 21 {
		if <-answers == "" {
			t.Error("a session was not opened in its turn")
		}
	}
}

// So does each look at a task of the server.
func TestLooksAtTasksOfTheServerTakeTurns(t *testing.T) {
	server := newHeldServer(mcp.MethodTasksGet)
	base := serveAddresses(t, Options{Caller: server, Concurrency: 4})
	answers := make(chan string)
	callAs := func(from, as string) {
		at := base + "?from=" + from + "&as=" + as
		session, _ := initialize(t, at, "2025-11-25", `{}`)
		go func() { _, body := post(t, at, session, call("long")); answers <- body }()
	}
	for i := range 10 {
		callAs("192.0.2.1", fmt.Sprint("made-up-", i))
	}
	first, second := <-server.begun, <-server.begun
	server.begun <- first
	server.begun <- second
	callAs("192.0.2.2", "modest")
	server.expect(t, 2, "modest")
	close(server.goOn)
	for range 11 {
		if body := <-answers; !strings.Contains(body, `"content":[]`) {
			t.Errorf("a call failed: %s", body)
		}
	}
}

// A session is opened while calls have all turns, and a task is cancelled.
func TestWhatIsBriefWaitsForNoCall(t *testing.T) {
	server := newSlowServer()
	base := serveAddresses(t, Options{Caller: server, Concurrency: 1}) + "?from=192.0.2.1"
	session, _ := initialize(t, base, "2025-11-25", `{}`)
	answer := make(chan string)
	go func() { _, body := post(t, base, session, call("long")); answer <- body }()
	<-server.begun
	if another, body := initialize(t, base+"&as=another", "2025-11-25", `{}`); another == "" {
		t.Errorf("no session beside a call: %s", body)
	}
	server.goOn <- struct{}{}
	<-answer
	a := &admitting{}
	for method, brief := range map[string]bool{
		mcp.MethodDiscover: true, mcp.MethodTasksCancel: true, mcp.MethodTasksUpdate: true, mcp.MethodTasksGet: false, mcp.MethodToolsList: false,
	} {
		a.calls, a.brief = turns.New(1), turns.New(1)
		if queue, _ := a.turnOf(&upstream.Call{Method: method}); (queue == a.brief) != brief {
			t.Errorf("%s: brief is %v", method, !brief)
		}
	}
}

// A client that is connected to a server of its own era has a stream there for as long as its
// session: these are bounded with all that never ends.
func TestLinesToServersAreBounded(t *testing.T) {
	const mine = 14 // of 16
	s := &frailServer{streams: map[string]chan string{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	opt := over(server.URL)
	opt.Legacy.Endless = budget.NewPlaces(16)
	base := serveAddresses(t, opt)
	here, there := base+"?from=192.0.2.1", base+"?from=192.0.2.2"
	var sessions []string
	for i := range mine {
		session, _ := initialize(t, here, "2024-11-05", `{}`)
		if session == "" {
			t.Fatalf("session %d was not opened", i)
		}
		sessions = append(sessions, session)
	}
	if session, body := initialize(t, here, "2024-11-05", `{}`); session != "" || !strings.Contains(body, "too many streams") {
		t.Errorf("one more: %q, %s", session, body)
	}
	if session, body := initialize(t, there, "2024-11-05", `{}`); session == "" {
		t.Errorf("somebody else has no place: %s", body)
	}
	for _, session := range sessions[:2] { // one for the other address
		send(t, http.MethodDelete, here, session, "")
	}
	for end := patience(t); end.Err() == nil; { // until their lines have ended
		if session, _ := initialize(t, here, "2024-11-05", `{}`); session != "" {
			return
		}
	}
	t.Error("what has ended keeps its place")
}
