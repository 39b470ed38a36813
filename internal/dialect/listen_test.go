package dialect_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sse"
)

// announcer is a server whose listen stream a test writes to. It names the
// subscription by a string, as drafts did until 2026-06-09.
type announcer struct {
	ready chan struct{} // closed when acknowledged
	say   chan [2]string
}

func newAnnouncer() *announcer {
	return &announcer{make(chan struct{}), make(chan [2]string)}
}

func (a *announcer) listen(w http.ResponseWriter, r *http.Request, s *seen) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(method, member string) {
		params := `{"_meta":{"` + mcp.MetaSubscriptionID + `":"` + string(s.msg.ID) + `"}` + member + `}`
		_, _ = w.Write(sse.AppendEvent(nil, "", jsonrpc.AppendNotification(nil, method, []byte(params))))
		w.(http.Flusher).Flush()
	}
	send(mcp.NotificationAcknowledged, `,"notifications":`+s.member("notifications"))
	close(a.ready)
	for {
		select {
		case n := <-a.say:
			send(n[0], n[1])
		case <-r.Context().Done():
			return // without a result, as until 2026-06-23
		}
	}
}

// TestI11CompletionGoesToItsOwner: the server's own elicitationId is the one the
// client sees (I-2), and the notice about it comes once, on the call's stream.
func TestI11CompletionGoesToItsOwner(t *testing.T) {
	const page = `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://a.example/","elicitationId":"e1"}}`
	a, dealtWith, heard := newAnnouncer(), make(chan struct{}), make(chan string, 3)
	srv := newServer(t, script{
		mcp.MethodDiscover: {discovered("2026-06-30", `{"tools":{"listChanged":true}}`)},
		mcp.MethodListen:   {a.listen},
		mcp.MethodToolsCall: {
			result(`{"resultType":"input_required","inputRequests":{"a":` + page + `},"requestState":"s"}`),
			func(w http.ResponseWriter, r *http.Request, s *seen) {
				for _, id := range []string{"someone else's", "e1", "e1"} {
					a.say <- [2]string{mcp.NotificationElicitationComplete, `,"elicitationId":"` + id + `"`}
				}
				a.say <- [2]string{mcp.NotificationToolsListChanged, ""}
				<-dealtWith
				untilHeard(t, heard)
				result(hello)(w, r, s)
			},
		},
	})
	c := connect(t, srv, dialect.Options{})
	c.heard = heard
	<-a.ready
	stream := c.get()
	go func() { // what the listen brought is dealt with in order
		defer close(dealtWith)
		defer stream.Body.Close()
		next(stream)
	}()
	x := c.call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "answer", string(x.response.Result), hello)
	want(t, "asked", x.names(), "elicitation/create")
	want(t, "I-2 id", string(rawjson.Get(x.asked[0].Params, "elicitationId")), `"e1"`)
	if len(x.told) != 1 || x.told[0].Method != mcp.NotificationElicitationComplete {
		t.Fatalf("told %v", x.told)
	}
	want(t, "I-11 id", string(x.told[0].Params), `{"elicitationId":"e1"}`)
	want(t, "never asked for", srv.all(mcp.MethodListen)[0].member("notifications"), `{"toolsListChanged":true}`)
}

// untilHeard waits until the client was told something, long before its call is
// over.
func untilHeard(t *testing.T, heard <-chan string) {
	select {
	case <-heard:
	case <-time.After(5 * time.Second):
		t.Error("I-11: the client was not told while the call went on")
	}
}

// next returns the data of the next message on a stream; nil at its end.
func next(stream *http.Response) []byte {
	events := sse.NewDecoder(stream.Body, 1<<20)
	for {
		event, err := events.Next()
		if err != nil || len(event.Data) > 0 {
			return event.Data
		}
	}
}

// TestI11CompletionOnAResourceListen: any listen of the session may bring it.
func TestI11CompletionOnAResourceListen(t *testing.T) {
	const page = `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://a.example/","elicitationId":"e1"}}`
	a, heard := newAnnouncer(), make(chan string, 3)
	srv := newServer(t, script{
		mcp.MethodDiscover: {discovered("2026-06-30", `{"tools":{},"resources":{"subscribe":true}}`)},
		mcp.MethodListen:   {a.listen},
		mcp.MethodToolsCall: {
			result(`{"resultType":"input_required","inputRequests":{"a":` + page + `}}`),
			func(w http.ResponseWriter, r *http.Request, s *seen) {
				a.say <- [2]string{mcp.NotificationElicitationComplete, `,"elicitationId":"e1"`}
				untilHeard(t, heard)
				result(hello)(w, r, s)
			},
		},
	})
	c := connect(t, srv, dialect.Options{})
	c.call(mcp.MethodResourcesSubscribe, `{"uri":"file:///a"}`, agree)
	c.heard = heard
	c.call(mcp.MethodToolsCall, sayHello, agree)
}

// TestI11CompletionOnTheCallItself: drafts with sessions had it there.
func TestI11CompletionOnTheCallItself(t *testing.T) {
	heard := make(chan string, 3)
	const page = `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://a.example/","elicitationId":"e1"}}`
	srv := newServer(t, script{mcp.MethodDiscover: {early}, mcp.MethodToolsCall: {
		result(`{"resultType":"input_required","inputRequests":{"a":` + page + `}}`),
		func(w http.ResponseWriter, _ *http.Request, s *seen) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, id := range []string{"e2", "e1", "e1"} {
				notice := jsonrpc.AppendNotification(nil, mcp.NotificationElicitationComplete, []byte(`{"elicitationId":"`+id+`"}`))
				_, _ = w.Write(sse.AppendEvent(nil, "", notice))
			}
			w.(http.Flusher).Flush()
			untilHeard(t, heard)
			_, _ = w.Write(sse.AppendEvent(nil, "", jsonrpc.AppendResult(nil, s.msg.ID, []byte(hello))))
		},
	}})
	c := connect(t, srv, dialect.Options{})
	c.heard = heard
	x := c.call(mcp.MethodToolsCall, sayHello, agree)
	if len(x.told) != 1 || string(x.told[0].Params) != `{"elicitationId":"e1"}` {
		t.Fatalf("told %v", x.told)
	}
}

// TestC32CompletionIsMadeUpWhereTheServerSaysNothing keeps the two apart.
func TestC32CompletionIsMadeUpWhereTheServerSaysNothing(t *testing.T) {
	const page = `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://a.example/","elicitationId":"e1"}}`
	srv := newServer(t, script{mcp.MethodDiscover: {early}, mcp.MethodToolsCall: {
		result(`{"resultType":"input_required","inputRequests":{"a":` + page + `}}`), result(hello)}})
	x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
	if len(x.told) != 1 || string(x.told[0].Params) != `{"elicitationId":"e1"}` {
		t.Fatalf("told %v", x.told)
	}
}

// TestI2SubscriptionsNamedByAString: changes arrive although the id is spelled
// otherwise than it was sent.
func TestI2SubscriptionsNamedByAString(t *testing.T) {
	a := newAnnouncer()
	srv := newServer(t, script{
		mcp.MethodDiscover:  {discovered("2026-06-30", `{"tools":{"listChanged":true}}`)},
		mcp.MethodListen:    {a.listen},
		mcp.MethodToolsList: {result(`{"tools":[],"ttl":60}`)},
	})
	c := connect(t, srv, dialect.Options{})
	<-a.ready
	c.call(mcp.MethodToolsList, `{}`, agree)
	stream := c.get()
	defer stream.Body.Close()
	a.say <- [2]string{mcp.NotificationToolsListChanged, ""}
	msg := c.parse(next(stream))
	want(t, "announced", msg.Method, mcp.NotificationToolsListChanged)
	want(t, "params", string(msg.Params), "")
	c.call(mcp.MethodToolsList, `{}`, agree)
	want(t, "C-21 the cache was emptied first", srv.methods(), "tools/list tools/list")
}
