package legacy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBackend answers by method name. Its zero value serves "echo" and "hold".
type fakeBackend struct {
	open      func(downstream.Caller, jsonrpc.Message) error
	restore   func([]byte) error
	due       func(flow []byte) (time.Time, error)
	resumes   func(downstream.Caller, []byte, downstream.Reply) error // of conversations that are restored
	connected downstream.Conversation
	modern    http.Handler
	alone     bool                      // nobody else changes what is kept of its sessions
	orderly   bool                      // conversations only hand requests on
	held      chan *call                // every request of method "hold"
	begins    func(*downstream.Request) // is told of each that is served, and may hold it up; nil: nobody
	unkept    error                     // of answers; nil: they are taken
	ends      func(*call)               // ends what is under way as its conversation is closed; nil: it is abandoned at once

	mu    sync.Mutex
	convs []*fakeConv
}

// call is a request that the test itself answers.
type call struct {
	downstream.Reply
	caller downstream.Caller
	req    downstream.Request
}

func (c *call) finish(result string) {
	c.Reply.Finish(downstream.Result(c.req.ID, []byte(result)))
}

// Send and Finish take whatever text a test wants on the wire.
func (c *call) Queue(text []byte)  { c.Reply.Queue(texted(text)) }
func (c *call) Send(text []byte)   { c.Reply.Send(texted(text)) }
func (c *call) Finish(text []byte) { c.Reply.Finish(texted(text)) }

// texted is a message with this text, and parts as far as it has any.
func texted(text []byte) downstream.Message {
	msg, _ := jsonrpc.Parse(text)
	return downstream.Message{Message: msg, Text: text}
}

// pusher pushes whatever text a test wants on the wire.
type pusher struct{ downstream.Pusher }

func (p pusher) Push(key string, text []byte) { p.Pusher.Push(key, texted(text)) }

func newFake() *fakeBackend { return &fakeBackend{held: make(chan *call, 64)} }

func (b *fakeBackend) Open(_ context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	if b.open != nil {
		if err := b.open(caller, req); err != nil {
			return nil, nil, err
		}
	}
	v, _ := rawjson.Text(rawjson.Get(req.Params, "protocolVersion"))
	c := &fakeConv{backend: b, version: mcp.Version(v), push: pusher{push}}
	b.mu.Lock()
	b.convs = append(b.convs, c)
	b.mu.Unlock()
	return c, []byte(`{"protocolVersion":"` + v + `"}`), nil
}

// Restore takes any record for the version.
func (b *fakeBackend) Restore(_ context.Context, _, _ downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	if b.restore != nil {
		if err := b.restore(record); err != nil {
			return nil, err
		}
	}
	version, level, _ := strings.Cut(string(record), " ")
	c := &fakeConv{backend: b, version: mcp.Version(version), level: level, push: pusher{push}, resumes: b.resumes}
	b.mu.Lock()
	b.convs = append(b.convs, c)
	b.mu.Unlock()
	return c, nil
}

func (b *fakeBackend) Due(flow []byte) (time.Time, error) {
	if b.due != nil {
		return b.due(flow)
	}
	return time.Time{}, downstream.ErrGone
}

func (b *fakeBackend) Stateless(_ downstream.Caller, v mcp.Version) downstream.Conversation {
	return &fakeConv{backend: b, version: v, stateless: true}
}

func (b *fakeBackend) Modern() http.Handler               { return b.modern }
func (b *fakeBackend) Connected() downstream.Conversation { return b.connected }
func (b *fakeBackend) Relayer() downstream.Relayer        { return nil }

// last returns the newest conversation.
func (b *fakeBackend) last() *fakeConv {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.convs[len(b.convs)-1]
}

type fakeConv struct {
	rests     atomic.Bool // there is nothing to it but its record
	backend   *fakeBackend
	version   mcp.Version
	push      pusher
	stateless bool
	stranger  bool // calls are in another process
	awaits    bool // a call is to be made again
	leaving   int  // how many answers find that their call is just being left to another process

	asksAgain func(questions []string) // is told what Remind is

	ending func() // runs when the conversation is closed; nil: nothing

	renews  func()                                                  // is done by Renew
	resumes func(downstream.Caller, []byte, downstream.Reply) error // is done by Resume; nil: nothing can be resumed
	cancels *call                                                   // is dropped by any notification, as by its cancellation

	mu       sync.Mutex
	level    string
	notified []string
	givenUp  []string // flows
	answered []string
	deaf     int      // how often it was told to listen no more
	goesBy   []string // credentials that Reauthorize told
	answerer []string // principals
	notifier []string
	closed   error
	open     []*call
}

func (c *fakeConv) Version() mcp.Version { return c.version }
func (c *fakeConv) Orderly() bool        { return c.backend.orderly }

func (c *fakeConv) Record() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []byte(string(c.version) + " " + c.level)
}

func (c *fakeConv) Resume(caller downstream.Caller, flow []byte, out downstream.Reply) error {
	if c.resumes != nil {
		return c.resumes(caller, flow, out)
	}
	return downstream.ErrGone
}

func (c *fakeConv) GiveUp(_ downstream.Caller, flow []byte) (func(), error) {
	record := string(flow)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.givenUp = append(c.givenUp, record)
	}, nil
}

// setLevel changes the record, as a backend does.
func (c *fakeConv) setLevel(level string) {
	c.mu.Lock()
	c.level = level
	c.mu.Unlock()
	c.push.Changed()
}

func (c *fakeConv) Serve(_ context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if c.backend.begins != nil {
		c.backend.begins(&req)
	}
	if req.Method == "hold" || rawjson.Has(req.Params, "hold") {
		k := &call{out, caller, req}
		c.mu.Lock()
		c.open = append(c.open, k)
		c.mu.Unlock()
		c.backend.held <- k
		return
	}
	switch req.Method {
	case "chatty":
		out.Send(downstream.Notification(mcp.NotificationMessage, nil))
		out.Finish(downstream.Result(req.ID, nil))
	case "refuse":
		r := &downstream.Refusal{Status: 401, Challenge: []string{`Bearer scope="x"`}}
		if !out.Refuse(r) {
			out.Finish(downstream.Failure(req.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "authorization needed"}))
		}
	case "abandon":
		out.Abandon()
	case "panic":
		panic("backend bug")
	case "whoami":
		out.Finish(downstream.Result(req.ID, fmt.Appendf(nil, `{"stateless":%t,"interactive":%t}`, c.stateless, out.Interactive())))
	default:
		result := req.Params
		if result == nil {
			result = []byte(`{}`)
		}
		out.Finish(downstream.Result(req.ID, result))
	}
}

func (c *fakeConv) Notify(caller downstream.Caller, msg jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifier = append(c.notifier, caller.Principal)
	c.notified = append(c.notified, msg.Method)
	if k := c.cancels; k != nil {
		k.Checkpointer().Drop()
		k.Abandon()
	}
}

func (c *fakeConv) Remind(questions []string) { c.asksAgain(questions) }

func (c *fakeConv) Knows(caller downstream.Caller, _ jsonrpc.ID) bool {
	return !c.stranger && !caller.Unproven
}

// Owns has all calls be of whoever owns the session.
func (c *fakeConv) Owns(caller downstream.Caller, _ []byte) bool { return !caller.Unproven }

func (c *fakeConv) Answer(caller downstream.Caller, msg jsonrpc.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.backend.unkept != nil {
		return c.backend.unkept
	}
	if caller.Unproven {
		return downstream.ErrNotHere
	}
	if c.leaving > 0 {
		c.leaving--
		return downstream.ErrNotHere
	}
	c.answerer = append(c.answerer, caller.Principal)
	c.answered = append(c.answered, string(msg.ID))
	return nil
}

func (c *fakeConv) Flows() [][]byte { return nil }
func (c *fakeConv) Leave()          {}
func (c *fakeConv) Renew() {
	if c.renews != nil {
		c.renews()
	}
}
func (c *fakeConv) Conclude() {}

func (c *fakeConv) Awaits(jsonrpc.Message) bool { return c.awaits }

func (c *fakeConv) Reauthorize(authorization string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goesBy = append(c.goesBy, authorization)
}

func (c *fakeConv) StopListening() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf++
}

func (c *fakeConv) Unload(func(downstream.Checkpointer, time.Time) bool) bool { return c.rests.Load() }

func (c *fakeConv) Adopt(before, theirs []byte) error {
	if len(before) == 0 && c.backend.alone {
		return fmt.Errorf("%w: it has no record", downstream.ErrGone)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, c.level, _ = strings.Cut(string(theirs), " ")
	return nil
}

func (c *fakeConv) EndCall(string) bool { return false }

func (c *fakeConv) Look() observe.Conversation { return observe.Conversation{Version: c.version} }

func (*fakeConv) Watch(func(observe.Flow, downstream.Reply) downstream.Reply) {}

func (c *fakeConv) Close(cause error) {
	c.mu.Lock()
	c.closed = cause
	open, ending := c.open, c.ending
	c.open = nil
	c.mu.Unlock()
	if ending != nil {
		ending()
	}
	for _, k := range open {
		if c.backend.ends != nil {
			go c.backend.ends(k)
			continue
		}
		k.Abandon()
	}
}

func (c *fakeConv) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// running are the client addresses of the requests whose handlers have not returned.
var running sync.Map

// inFront makes what serves connections, before or instead of net/http's server.
var inFront = func(h http.Handler, s *http.Server) server { return testmode.NewServer(h, s) }

// client returns a client without connections of other tests.
func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}
