package dialect_test

import (
	"net/http"
	"testing"

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
	a := newAnnouncer()
	notice := [2]string{mcp.NotificationElicitationComplete, `,"elicitationId":"e1"`}
	srv := newServer(t, script{
		mcp.MethodDiscover: {discovered("2026-06-30", `{"tools":{"listChanged":true}}`)},
		mcp.MethodListen:   {a.listen},
		mcp.MethodToolsCall: {
			result(`{"resultType":"input_required","inputRequests":{"a":` + page + `},"requestState":"s"}`),
			func(w http.ResponseWriter, r *http.Request, s *seen) {
				a.say <- [2]string{mcp.NotificationElicitationComplete, `,"elicitationId":"someone else's"`}
				a.say <- notice
				a.say <- notice
				a.say <- notice // the one before has been dealt with
				result(hello)(w, r, s)
			},
		},
	})
	c := connect(t, srv, dialect.Options{})
	<-a.ready
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
	defer stream.Body.Close() //nolint:errcheck // the test has what it wants
	a.say <- [2]string{mcp.NotificationToolsListChanged, ""}
	events := sse.NewDecoder(stream.Body, 1<<20)
	for {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(event.Data) > 0 {
			msg := c.parse(event.Data)
			want(t, "announced", msg.Method, mcp.NotificationToolsListChanged)
			want(t, "params", string(msg.Params), "")
			break
		}
	}
	c.call(mcp.MethodToolsList, `{}`, agree)
	want(t, "C-21 the cache was emptied first", srv.methods(), "tools/list tools/list")
}
