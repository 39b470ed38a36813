package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// legacyServer answers as the test says and keeps what it saw.
type legacyServer struct {
	answer func(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message)

	mu   sync.Mutex
	seen []string // "METHOD session version last-event-id body"
}

func (s *legacyServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, strings.TrimSpace(strings.Join([]string{r.Method, r.Header.Get("Mcp-Session-Id"),
		r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Last-Event-Id"), string(body)}, "|")))
	s.mu.Unlock()
	if r.URL.RawQuery != "key=1" || r.Header.Get("X-Own") != "1" || r.Header.Get("Authorization") != "Bearer mine" && r.Method == http.MethodPost {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	msg, _ := jsonrpc.Parse(body)
	switch {
	case msg.Method == "initialize":
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Mcp-Session-Id", "s1")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
	case r.Method == http.MethodPost && msg.Kind() != jsonrpc.Request:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.answer(w, r, &msg)
	}
}

func (s *legacyServer) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func response(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"x": 1}}`
}

func connected(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message)) (*legacyServer, *client, downstream.Conversation) {
	t.Helper()
	s, c := &legacyServer{answer: answer}, newClient()
	conv, _, err := open(t, Options{Server: over(t, s.serve)}, c)
	if err != nil {
		t.Fatal(err)
	}
	return s, c, conv
}

func TestEachMessageIsAPostOfTheSession_A16(t *testing.T) {
	s := &legacyServer{answer: func(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message) {
		switch r.Method {
		case http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case http.MethodPost:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, response(string(msg.ID)))
		}
	}}
	relay := New(Options{Server: over(t, s.serve)})
	caller := downstream.Caller{Authorization: "Bearer mine", Header: http.Header{"Upgrade": {"websocket"}, "X-Client": {"a"}}}
	conv, _, err := relay.Open(t.Context(), caller, message(t, initialize), newClient())
	if err != nil {
		t.Fatal(err)
	}
	note := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	conv.Notify(caller, message(t, note))
	out := newReply()
	conv.Serve(t.Context(), caller, downstream.NewRequest(message(t, aCall)), out)
	if got := out.wait(t); got != response(`"a"`) {
		t.Errorf("the call got %s", got)
	}
	conv.Close(nil)
	relay.Close()
	var got []string
	for _, line := range s.all() {
		if !strings.HasPrefix(line, "GET") { // which comes at any time
			got = append(got, line)
		}
	}
	want := []string{"POST||||" + initialize, "POST|s1|2025-11-25||" + note, "POST|s1|2025-11-25||" + aCall, "DELETE|s1|2025-11-25||"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the server saw\n%s", strings.Join(got, "\n"))
	}
}

// TestAStreamThatTheServerEndsIsResumed: since 2025-11-25 that is how servers make
// clients ask again.
func TestAStreamThatTheServerEndsIsResumed_E20(t *testing.T) {
	note := `{"jsonrpc":"2.0","method":"notifications/x"}`
	s, _, conv := connected(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		switch r.Header.Get("Last-Event-Id") {
		case "":
			events(w, "id: 1\nretry: 1\ndata: \n\n")
		case "1":
			events(w, "id: 2\ndata: "+note+"\n\n")
		default:
			events(w, "id: 3\ndata: "+response(`"a"`)+"\n\n")
			<-r.Context().Done() // it need not be waited for
		}
	})
	out := ask(t, conv, aCall)
	if got := out.wait(t); got != response(`"a"`) || len(out.sent) != 1 || out.sent[0] != note {
		t.Errorf("the call got %s and %s", out.sent, got)
	}
	if got := s.all(); len(got) != 4 || got[3] != "GET|s1|2025-11-25|2|" {
		t.Errorf("the server saw %s", got)
	}
}

func TestResponsesThatAreNoneAreErrors_E41(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter)
		part   string
	}{
		"a status":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, "HTTP 502"},
		"accepted":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, "HTTP 202"},
		"a cut stream":     {func(w http.ResponseWriter) { events(w, "data: {\n\n") }, "ended before the response"},
		"a large event":    {func(w http.ResponseWriter) { events(w, "data: "+strings.Repeat("x", 9000)+"\n\n") }, "limits.response-size"},
		"another message":  {func(w http.ResponseWriter) { plain(w, `{"jsonrpc":"2.0","method":"x"}`) }, "another message"},
		"a large body":     {func(w http.ResponseWriter) { plain(w, strings.Repeat(" ", 5000)) }, "limits.response-size"},
		"its own error":    {func(w http.ResponseWriter) { refuse(w, 400, `"a"`) }, `{"jsonrpc":"2.0","id":"a","error":{"code":-5,"message":"no", "x":1}}`},
		"a nameless error": {func(w http.ResponseWriter) { refuse(w, 400, `null`) }, `"code":-5`},
	} {
		_, _, conv := connected(t, func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { tc.answer(w) })
		if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, tc.part) || !strings.Contains(got, `"id":"a"`) {
			t.Errorf("%s: the call got %s", name, got)
		}
	}
}

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

func refuse(w http.ResponseWriter, status int, id string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-5,"message":"no", "x":1}}`, id)
}

func TestTheServersDemandForAuthorizationIsOne_A23(t *testing.T) {
	demand := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer x")
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _, err := open(t, Options{Server: over(t, demand)}, nil)
	if refusal, ok := errors.AsType[*downstream.Refusal](err); !ok || refusal.Status != 401 || len(refusal.Challenge) != 1 {
		t.Errorf("initialize ends with %v", err)
	}
}

func TestALostSessionEndsTheConnection(t *testing.T) {
	_, c, conv := connected(t, func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) { w.WriteHeader(http.StatusNotFound) })
	if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, errSession.Error()) {
		t.Errorf("the call got %s", got)
	}
	if why := <-c.ended; !errors.Is(why, errSession) {
		t.Errorf("the connection ends with %v", why)
	}
}

func TestTheStreamOfGetBringsWhatNobodyAskedFor(t *testing.T) {
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	gets := 0
	_, c, conv := connected(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		if r.Method != http.MethodGet {
			return
		}
		gets++
		events(w, fmt.Sprintf("id: g%d\nretry: 1\ndata: %s\n\n", gets, changed))
		if gets > 1 {
			if r.Header.Get("Last-Event-Id") != "g1" {
				t.Errorf("resumed after %q", r.Header.Get("Last-Event-Id"))
			}
			<-r.Context().Done()
		}
	})
	conv.Notify(downstream.Caller{Authorization: "Bearer mine"}, message(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	for range 2 {
		if got := <-c.pushed; got != changed {
			t.Errorf("pushed %s", got)
		}
	}
}

func TestCancellingLetsGoOfTheResponse(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	begin, end := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(gone) }) // the end of the session comes here too
	_, _, conv := connected(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		events(w, ": begun\n\n")
		begin()
		<-r.Context().Done()
		end()
	})
	out := ask(t, conv, aCall)
	<-begun // else the request may be cut off before the server has seen it
	conv.Notify(downstream.Caller{Authorization: "Bearer mine"},
		message(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
	out.wait(t)
	<-gone
}

// TestACancelledRequestDoesNotEndTheNextOneWithItsID: some clients give every
// request the same id.
func TestACancelledRequestDoesNotEndTheNextOneWithItsID_B1(t *testing.T) {
	var once sync.Once
	begun, ended := make(chan struct{}), make(chan struct{})
	_, _, conv := connected(t, func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Message) {
		first := false
		once.Do(func() { first = true })
		if first {
			events(w, ": begun\n\n")
			close(begun)
			<-r.Context().Done()
			close(ended)
			return
		}
		<-ended // which must do no harm
		plain(w, response(`"a"`))
	})
	cancelled := ask(t, conv, aCall)
	<-begun
	conv.Notify(downstream.Caller{Authorization: "Bearer mine"},
		message(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
	cancelled.wait(t)
	if got := ask(t, conv, aCall).wait(t); got != response(`"a"`) {
		t.Errorf("the next call got %s", got)
	}
}

func TestAServerThatIsNotThereIsAnError_A25(t *testing.T) {
	s := over(t, func(http.ResponseWriter, *http.Request) {})
	s.opt.URL.Host = "127.0.0.1:1"
	if _, _, err := open(t, Options{Server: s}, nil); err == nil || !strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "key=1") {
		t.Errorf("initialize ends with %v", err)
	}
}

// A server that has no stream for GET is not asked again; whatever else it says now it may
// not say in a moment.
func TestTheStreamOfGetIsAskedForAgain(t *testing.T) {
	for status, want := range map[int]bool{
		404: false, 405: false, 501: false, 200: false, 302: false,
		400: true, 401: true, 403: true, 409: true, 429: true, 500: true, 503: true,
	} {
		l := &httpLine{}
		if got := l.heard(&http.Response{StatusCode: status}, &place{}); got != want {
			t.Errorf("%d: %t", status, got)
		}
	}
}

// Some say "Accepted" in the body, too.
func TestWhatIsAcceptedLeavesItsConnection(t *testing.T) {
	var conns atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "Accepted")
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	at, _ := url.Parse(srv.URL)
	s := NewHTTP(HTTPOptions{URL: at})
	defer s.Close()
	l := &httpLine{server: s}
	for range 10 {
		if err := l.hand(t.Context(), &outgoing{text: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for ten messages", n)
	}
}

// E-39: an error is as long as any response may be, whatever its status.
func TestLongErrorsAreHandedOn_E39(t *testing.T) {
	for size, part := range map[int]string{100 << 10: `"code":-5`, 2 << 20: "limits.response-size"} {
		s := &legacyServer{answer: func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"a","error":{"code":-5,"message":"no","data":%q}}`, strings.Repeat("x", size))
		}}
		front := over(t, s.serve)
		front.opt.MaxMessage = 1 << 20
		conv, _, err := open(t, Options{Server: front}, newClient())
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, part) {
			t.Errorf("%d bytes: the call got %.300s", size, got)
		}
	}
}
