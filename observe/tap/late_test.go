package tap

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/upstream"
)

// staged is a conversation of one call, which the test moves. As an origin it is what the
// requests upstream are made for.
type staged struct {
	downstream.Conversation
	flow observe.Flow
	out  downstream.Reply
}

func (s *staged) Version() mcp.Version { return mcp.V20250618 }

func (s *staged) Look() observe.Conversation {
	return observe.Conversation{Flows: []observe.Flow{s.flow}}
}

func (s *staged) Serve(_ context.Context, _ downstream.Caller, _ downstream.Request, out downstream.Reply) {
	s.out = out
}

func (s *staged) Answer(downstream.Caller, jsonrpc.Message) error { return nil }

func (s *staged) Reply() downstream.Reply { return s.out }

func (s *staged) Watch(see func(observe.Flow, downstream.Reply) downstream.Reply) {
	if out := see(s.flow, s.out); out != nil {
		s.out = out
	}
}

// beginning is a backend whose one session is staged.
type beginning struct {
	downstream.Backend
	conv *staged
}

func (b beginning) Open(context.Context, downstream.Caller, jsonrpc.Message, downstream.Pusher) (downstream.Conversation, []byte, error) {
	return b.conv, nil, nil
}

// answering is a server that does something before it answers.
type answering struct {
	upstream.Caller
	meanwhile func()
}

func (a *answering) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	a.meanwhile()
	return &upstream.Answer{Result: []byte(`{"resultType":"input_required"}`)}, nil
}

// said are a session's events in words.
func said(events []observe.Event) string {
	var list []string
	for _, e := range events {
		hop := "down"
		if e.Hop == observe.Upstream {
			hop = "up"
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("#%d %s %s %s %d", e.Call, hop, e.Kind, e.Status, e.Round)))
	}
	return strings.Join(list, "; ")
}

// TestTheRestOfACallIsSeen: of one that began while nobody looked, from the moment on when
// somebody does, its beginning as far as it is known included.
func TestTheRestOfACallIsSeen(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	began := time.Now().Add(-time.Minute)
	s := &staged{flow: observe.Flow{Method: mcp.MethodToolsCall, Name: "book", Waits: observe.ForServer, Began: began, Since: began}}
	conv, _, _ := tp.Backend(beginning{conv: s}, nobody{}).Open(context.Background(), downstream.Caller{}, jsonrpc.Message{Method: mcp.MethodInitialize}, nil)
	conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall}), sink{})
	server := &answering{}
	up := tp.Caller(server, nobody{})
	var number uint64
	server.meanwhile = func() { // the server is at the first round when somebody looks, twice
		tp.Look(time.Minute)
		number = conv.Look().Number
		conv.Look()
	}
	_, _ = up.Do(context.Background(), &upstream.Call{Method: mcp.MethodToolsCall, Origin: s}, nil)
	s.Reply().Send(downstream.Question(`"b-1234567890SECRET"`, mcp.MethodElicitationCreate, nil))
	_ = conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: `"b-1234567890SECRET"`, Result: []byte("{}")})
	server.meanwhile = func() {}
	_, _ = up.Do(context.Background(), &upstream.Call{Method: mcp.MethodToolsCall, Origin: s}, nil)
	s.Reply().Finish(downstream.Result("1", []byte("{}")))

	events := tp.Of(number, kept)
	want := "#1 down begun server 1; #1 up response input_required 1; #1 down question  0; #0 down answer result 0; #1 up request  2; #1 up response input_required 2; #1 down response complete 0"
	if got := said(events); got != want {
		t.Fatalf("%s\nwant %s", got, want)
	}
	if first, last := events[0], events[len(events)-1]; !first.At.Equal(began) || first.Name != "book" || last.Took < time.Minute {
		t.Errorf("it began at %v as %q and took %v", first.At, first.Name, last.Took)
	}
}

// TestAnOpenQuestionOfBeforeIsSeen: its answer finds the call.
func TestAnOpenQuestionOfBeforeIsSeen(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	var lines int
	tp.Record(func(*observe.Event) { lines++ })
	tp.Record(nil)
	s := &staged{out: sink{}, flow: observe.Flow{Method: mcp.MethodToolsCall, Waits: observe.ForClient, Began: time.Now(), Since: time.Now(), Round: 1, Questions: []observe.Open{
		{ID: observe.QuestionID(`"b-1234567890SECRET"`), Method: mcp.MethodElicitationCreate, Asked: true}, {Asked: true, Answered: true}, {}}}}
	conv, _, _ := tp.Backend(beginning{conv: s}, nobody{}).Open(context.Background(), downstream.Caller{}, jsonrpc.Message{Method: mcp.MethodInitialize}, nil)
	tp.Record(func(*observe.Event) { lines++ })
	tp.Look(time.Minute)
	events := tp.Of(conv.Look().Number, kept)
	if got := said(events); got != "#1 down begun client 2; #1 down question  0" || events[1].ID != short(`"b-1234567890SECRET"`) {
		t.Errorf("%s, with the id %s", got, events[1].ID)
	}
	if lines != 0 {
		t.Errorf("%d lines are in a recording of what nobody said", lines)
	}
}

// TestACallThatOutlivesItsRequestIsSeenOnce: in that of the request which waits for it.
func TestACallThatOutlivesItsRequestIsSeenOnce(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	tp.Look(time.Minute)
	c := &conversation{tap: tp, number: 7}
	request := c.reply(sink{}, mcp.MethodToolsCall)
	kept := &passing{sink{}, request}
	call := c.reply(kept, mcp.MethodToolsCall)
	if seenBy(call) != request || !call.inside() || request.inside() {
		t.Error("it is not seen in that of its request")
	}
	kept.to = nil
	if seenBy(call) != call || call.inside() {
		t.Error("it is not seen although no request waits for it")
	}
}

// passing is the reply of a call that outlives its request.
type passing struct {
	sink
	to downstream.Reply
}

func (p *passing) Reply() downstream.Reply { return p.to }

// TestWhenNobodyLooksNothingIsAllocated: on the path of a call, be it of a request of the
// client's or of one to the server, and of a call that could be seen later.
func TestWhenNobodyLooksNothingIsAllocated(t *testing.T) {
	tp := NewHub(record.NewRedactor(false)).Mount("/mcp", observe.Server{})
	defer tp.Close()
	s := &staged{out: sink{}}
	conv, _, _ := tp.Backend(beginning{conv: s}, nobody{}).Open(context.Background(), downstream.Caller{}, jsonrpc.Message{Method: mcp.MethodInitialize}, nil)
	up := tp.Caller(ready{answer: &upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}}, nobody{})
	req := downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall})
	ctx, call, out := context.Background(), &upstream.Call{Method: mcp.MethodToolsCall, Origin: s}, downstream.Reply(&passing{})
	answer := jsonrpc.Message{ID: `"b-1"`}
	if n := testing.AllocsPerRun(100, func() {
		conv.Serve(ctx, downstream.Caller{}, req, out)
		_, _ = up.Do(ctx, call, nil)
		_ = conv.Answer(downstream.Caller{}, answer)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// ready is a server that has its answer.
type ready struct {
	upstream.Caller
	answer *upstream.Answer
}

func (r ready) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	return r.answer, nil
}
