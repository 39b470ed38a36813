package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// oldServer is a server of HTTP+SSE with one client: a stream, and an endpoint that
// keeps what was posted. It answers initialize, and the rest as the test says.
type oldServer struct {
	endpoint string        // that it names
	stream   chan string   // what it writes as message events
	end      chan struct{} // closed to end the stream
	left     chan struct{} // closed when the client ended it

	took chan string // what was posted, one by one

	mu     sync.Mutex
	posted []string                                         // "PATH?QUERY authorization body"
	answer func(w http.ResponseWriter, msg jsonrpc.Message) // to a POST; nil: 202
}

func newOld() *oldServer {
	return &oldServer{endpoint: "/messages?session=1", stream: make(chan string, 16), end: make(chan struct{}), left: make(chan struct{}), took: make(chan string, 16)}
}

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.serveStream(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.posted = append(s.posted, r.URL.RequestURI()+" "+r.Header.Get("Authorization")+" "+string(body))
	answer := s.answer
	s.took <- s.posted[len(s.posted)-1]
	s.mu.Unlock()
	msg, _ := jsonrpc.Parse(body)
	switch {
	case msg.Method == "initialize":
		s.stream <- `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}`
	case answer != nil:
		answer(w, msg)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

// answers changes what is answered from now on.
func (s *oldServer) answers(by func(http.ResponseWriter, jsonrpc.Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = by
}

func (s *oldServer) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Own") != "1" || r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Authorization") != "Bearer mine" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	events(w, ": hello\n\nevent: endpoint\ndata: "+s.endpoint+"\n\n")
	for {
		select {
		case text := <-s.stream:
			events(w, "event: message\ndata: "+text+"\n\n")
		case <-s.end:
			return
		case <-r.Context().Done():
			close(s.left)
			return
		}
	}
}

func (s *oldServer) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posted)
}

func TestAServerOfHTTPSSEIsRelayedTo(t *testing.T) {
	s, c := newOld(), newClient()
	conv, result, err := open(t, Options{Server: over(t, s.ServeHTTP).SSE()}, c)
	if err != nil || string(result) != `{"protocolVersion":"2024-11-05"}` || conv.Version() != "2024-11-05" {
		t.Fatalf("initialize gives %s, %v", result, err)
	}
	<-s.took // initialize
	out := ask(t, conv, aCall)
	want := "/messages?session=1 Bearer mine " + aCall
	if got := <-s.took; got != want {
		t.Errorf("the server got %s", got)
	}
	question := `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`
	s.stream <- question
	s.stream <- response(`"a"`)
	if got := out.wait(t); got != response(`"a"`) || !slices.Equal(out.sent, []string{question}) {
		t.Errorf("the call got %s, then %s", out.sent, got)
	}
	conv.Answer(downstream.Caller{Authorization: "Bearer newer"}, message(t, `{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`))
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	s.stream <- changed
	if got := <-c.pushed; got != changed {
		t.Errorf("pushed %s", got)
	}
	if got := <-s.took; got != `/messages?session=1 Bearer newer {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}` {
		t.Errorf("the server got %s", got)
	}
	conv.Close(errOver)
	<-s.left
}

// Who signs in to the server answers a request itself when it cannot. What else comes where a request is posted is no answer.
func TestAnAnswerWhereTheRequestIsPostedCounts(t *testing.T) {
	s, c := newOld(), newClient()
	var answers atomic.Pointer[string] // the id, in place of the server; nil: nothing
	conv, _, err := open(t, Options{Server: over(t, func(w http.ResponseWriter, r *http.Request) {
		id := answers.Load()
		if id == nil || r.Method != http.MethodPost {
			s.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+*id+`,"error":{"code":-32603,"message":"sign in first"}}`)
	}).SSE()}, c)
	if err != nil {
		t.Fatal(err)
	}
	<-s.took // initialize
	answers.Store(new(`"another"`))
	out := ask(t, conv, aCall)
	s.stream <- response(`"a"`)
	if got := out.wait(t); got != response(`"a"`) {
		t.Errorf("the call got %s", got)
	}
	answers.Store(new(`"a"`))
	if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "sign in first") {
		t.Errorf("the call got %s", got)
	}
	conv.Close(errOver)
	<-s.left
}

// TestE42AnOldServerThatRedirectsIsRelayedTo: where it redirects to is what its endpoint is relative to.
func TestE42AnOldServerThatRedirectsIsRelayedTo(t *testing.T) {
	s, c := newOld(), newClient()
	s.endpoint = "messages?session=1"
	conv, _, err := open(t, Options{Server: over(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path != "/sse/" {
			w.Header().Set("Location", "/sse/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		s.ServeHTTP(w, r)
	}).SSE()}, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-s.took; !strings.HasPrefix(got, "/sse/messages?session=1 Bearer mine ") {
		t.Errorf("the server got %s", got)
	}
	conv.Close(errOver)
	<-s.left
}

// D-15 and A-16: the stream is the session, and there is no other one for what was sent.
func TestTheEndOfTheStreamEndsTheSessionAndNothingIsSentAgain(t *testing.T) {
	s, c := newOld(), newClient()
	conv, _, err := open(t, Options{Server: over(t, s.ServeHTTP).SSE()}, c)
	if err != nil {
		t.Fatal(err)
	}
	s.answers(func(w http.ResponseWriter, _ jsonrpc.Message) {
		w.WriteHeader(http.StatusAccepted)
		close(s.end)
	})
	out := ask(t, conv, aCall)
	if got := out.wait(t); !strings.Contains(got, "stream has ended") || !strings.Contains(got, `"id":"a"`) {
		t.Errorf("the call under way gets %s", got)
	}
	if why := <-c.ended; !errors.Is(why, errStream) {
		t.Errorf("the session ends with %v", why)
	}
	after := ask(t, conv, `{"jsonrpc":"2.0","id":"b","method":"ping"}`)
	<-after.done
	if after.refused == nil || after.refused.Status != http.StatusNotFound || len(s.all()) != 2 {
		t.Errorf("afterwards %+v, and the server got %s", after.refused, s.all())
	}
}

func TestAPostThatIsLostIsNotSentAgain_D15(t *testing.T) {
	s := newOld()
	conv, _, err := open(t, Options{Server: over(t, s.ServeHTTP).SSE()}, newClient())
	if err != nil {
		t.Fatal(err)
	}
	s.answers(func(http.ResponseWriter, jsonrpc.Message) { panic(http.ErrAbortHandler) })
	if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "may have been done") || len(s.all()) != 2 {
		t.Errorf("the call gets %s, the server got %s", got, s.all())
	}
	s.answers(func(w http.ResponseWriter, _ jsonrpc.Message) { w.WriteHeader(http.StatusNotFound) })
	if got := ask(t, conv, aCall).wait(t); !strings.Contains(got, "HTTP 404") {
		t.Errorf("a call that is refused gets %s", got)
	}
	s.answers(func(w http.ResponseWriter, _ jsonrpc.Message) {
		w.Header().Set("WWW-Authenticate", "Bearer x")
		w.WriteHeader(http.StatusUnauthorized)
	})
	out := ask(t, conv, aCall)
	<-out.done
	if out.refused == nil || out.refused.Status != http.StatusUnauthorized || !slices.Equal(out.refused.Challenge, []string{"Bearer x"}) {
		t.Errorf("without credentials: %+v", out.refused)
	}
}

func TestCredentialsFollowNoEndpointToAnotherOrigin(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:1/messages", "https://example.com/", "//example.com/messages", "http://[::1", "ftp:x"} {
		s := newOld()
		s.endpoint = endpoint
		_, _, err := open(t, Options{Server: over(t, s.ServeHTTP).SSE()}, newClient())
		if err == nil || !strings.Contains(err.Error(), "another origin") || len(s.all()) != 0 {
			t.Errorf("%s: %v, and the server got %s", endpoint, err, s.all())
		}
		<-s.left
	}
	own, _ := url.Parse("http://example.com/sse?key=1")
	for endpoint, same := range map[string]bool{
		"messages": true, "?s=1": true, "http://EXAMPLE.com:80/m": true, "http://example.com/": true,
		"http://example.com:81/": false, "https://example.com/": false, "http://u@example.com/": false, "http://example.com.evil/": false,
	} {
		at, err := own.Parse(endpoint)
		if err != nil || sameOrigin(at, own) != same {
			t.Errorf("%s: %v, %v", endpoint, sameOrigin(at, own), err)
		}
	}
}

func TestAStreamThatIsNoneFailsInitialize(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"HTTP 503":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"does not open":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"does not begin": func(w http.ResponseWriter, _ *http.Request) { events(w, "data: {}\n\n") },
		"did not answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		c := newClient()
		if _, _, err := open(t, Options{Server: over(t, h).SSE()}, c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var refused *downstream.Refusal
	guarded := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	if _, _, err := open(t, Options{Server: over(t, guarded).SSE()}, newClient()); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("a guard: %v", err)
	}
}

func TestAMessageAboveTheLimitEndsTheStream(t *testing.T) {
	s, c := newOld(), newClient()
	conv, _, err := open(t, Options{Server: over(t, s.ServeHTTP).SSE()}, c)
	if err != nil {
		t.Fatal(err)
	}
	out := ask(t, conv, aCall)
	s.stream <- strings.Repeat("x", 5000)
	if got := out.wait(t); !strings.Contains(got, "limits.response-size") {
		t.Errorf("the call gets %s", got)
	}
	<-s.left
}
