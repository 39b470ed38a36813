package bridge

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is an upstream whose answers a test writes down: the n-th request gets
// the n-th step. It records what arrived.
type script struct {
	steps []step

	mu   sync.Mutex
	seen []*upstream.Call
}

type step func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error)

func (s *script) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	s.mu.Lock()
	n := len(s.seen)
	seen := *call
	if told := call.About; told.Version != "" {
		said, _ := rawjson.Text(rawjson.Get(rawjson.Get(call.Params, "_meta"), mcp.MetaProtocolVersion))
		name := map[string]string{mcp.MethodToolsCall: "name", mcp.MethodPromptsGet: "name", mcp.MethodResourcesRead: "uri"}[call.Method]
		if told.Version != said || name != "" && string(told.Name) != string(rawjson.Get(call.Params, name)) {
			panic("the headers would say " + told.Version + " " + string(told.Name) + ", the params " + string(call.Params))
		}
	}
	seen.Params = bytes.Clone(call.Params) // borrowed until Do returns
	s.seen = append(s.seen, &seen)
	s.mu.Unlock()
	if n >= len(s.steps) {
		return nil, &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "the script has no further step"}
	}
	return s.steps[n](ctx, call, notify)
}

func (s *script) Listen(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *script) Close() error { return nil }

func (s *script) calls() []*upstream.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*upstream.Call(nil), s.seen...)
}

// result answers with a result at once.
func result(raw string) step {
	return func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
		return &upstream.Answer{Result: []byte(raw)}, nil
	}
}

func rpcError(e *jsonrpc.Error) step {
	return func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
		return &upstream.Answer{Error: e}, nil
	}
}

func failure(f *upstream.Failure) step {
	return func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
		return nil, f
	}
}

// hang waits for the call to be cancelled.
func hang(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	<-ctx.Done()
	return nil, &upstream.Failure{Cause: upstream.Canceled, Sent: true, Err: ctx.Err()}
}

// client is a session's far end: it records what one exchange brought.
type client struct {
	t    *testing.T
	conv *conversation

	mu        sync.Mutex
	sent      []jsonrpc.Message
	response  *jsonrpc.Message
	refused   *downstream.Refusal
	committed bool
	abandoned bool
	jsonOnly  bool
	ends      int
	gone      atomic.Bool
	lasting   atomic.Int32 // what outlasts it
}

func (c *client) Interactive() bool { return !c.jsonOnly }

func (c *client) Queue(msg downstream.Message) { c.Send(msg) }
func (c *client) Flush()                       {}

func (c *client) Send(msg downstream.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends > 0 {
		c.t.Errorf("D-I13: sent after the end: %s", msg.AppendTo(nil))
	}
	c.committed = true
	c.sent = append(c.sent, c.parse(msg))
}

func (c *client) Finish(msg downstream.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.parse(msg)
	c.response = &m
	c.ends++
}

func (c *client) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends > 0
}

func (c *client) Refuse(r *downstream.Refusal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.committed {
		return false
	}
	c.refused = r
	c.ends++
	return true
}

func (c *client) Reachable() bool      { return !c.gone.Load() }
func (c *client) Attached() bool       { return !c.gone.Load() }
func (c *client) Delivered() bool      { return c.over() && !c.gone.Load() }
func (c *client) Continue(work func()) { go work() }
func (c *client) Outlast() func()      { c.lasting.Add(1); return func() { c.lasting.Add(-1) } }

func (*client) Checkpointer() downstream.Checkpointer { return nil }

func (c *client) Address() downstream.Address { return downstream.Address{} }

func (c *client) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	c.ends++
}

func (c *client) parse(sent downstream.Message) jsonrpc.Message {
	msg := sent.AppendTo(nil)
	m, err := jsonrpc.Parse(msg)
	if err != nil {
		c.t.Errorf("the bridge sent a bad message: %v: %s", err, msg)
	}
	if m.ID != sent.ID || m.Method != sent.Method || string(m.Params) != string(sent.Params) ||
		sent.Result != nil && string(m.Result) != string(sent.Result) || (m.Error == nil) != (sent.Error == nil) {
		c.t.Errorf("the parts of a message are not what it says: %+v: %s", sent, msg)
	}
	for _, leak := range []string{"resultType", "inputRequests", "requestState", "ttlMs"} {
		if strings.Contains(string(msg), `"`+leak+`"`) {
			c.t.Errorf("P-4: %s leaked: %s", leak, msg)
		}
	}
	return m
}

// asked returns the open server requests in the order they came.
func (c *client) asked() (requests []jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.sent {
		if m.Kind() == jsonrpc.Request {
			requests = append(requests, m)
		}
	}
	return requests
}

func (c *client) notified(method string) (found []jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.sent {
		if m.Kind() == jsonrpc.Notification && m.Method == method {
			found = append(found, m)
		}
	}
	return found
}

// answer replies to the n-th server request, counted from 0.
func (c *client) answer(n int, result string) {
	c.t.Helper()
	asked := c.asked()
	if n >= len(asked) {
		c.t.Fatalf("only %d server requests", len(asked))
	}
	c.conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: asked[n].ID, Result: []byte(result)})
	synctest.Wait()
}

func (c *client) refuseToAnswer(n int, e *jsonrpc.Error) {
	c.t.Helper()
	c.conv.Answer(downstream.Caller{}, jsonrpc.Message{ID: c.asked()[n].ID, Error: e})
	synctest.Wait()
}

func (c *client) result() string {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends != 1 {
		c.t.Fatalf("D-I13: %d ends", c.ends)
	}
	if c.response == nil {
		c.t.Fatalf("no response (refused %v, abandoned %v)", c.refused, c.abandoned)
	}
	return string(c.response.Result)
}

func (c *client) rpcError() *jsonrpc.Error {
	c.t.Helper()
	if got := c.result(); c.response.Error == nil {
		c.t.Fatalf("want an error, got %s", got)
	}
	return c.response.Error
}

const declaredByClient = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}`

// session returns a conversation of a 2025-11-25 client on a scripted upstream.
func session(t *testing.T, limits Limits, steps ...step) (*conversation, *script) {
	t.Helper()
	return sessionWith(t, Options{Limits: limits, Log: zerolog.Nop()}, steps...)
}

// sessionWith is session, of a bridge that is configured otherwise.
func sessionWith(t *testing.T, opt Options, steps ...step) (*conversation, *script) {
	t.Helper()
	up := &script{steps: steps}
	opt.Upstream = up
	b := New(opt)
	t.Cleanup(b.Close)
	conv := b.newConversation(mcp.V20251125, downstream.Caller{}, catalog.Unknown, nil)
	conv.declare([]byte(`{"name":"old","version":"1"}`), []byte(declaredByClient))
	b.adopt(conv)
	return conv, up
}

// request serves a request in its own goroutine, as a front would.
func request(t *testing.T, conv *conversation, id, method, params string) *client {
	return requestOn(&client{t: t, conv: conv}, id, method, params)
}

func requestOn(c *client, id, method, params string) *client {
	go c.conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{
		ID: jsonrpc.ID(id), Method: method, Params: []byte(params),
	}), c)
	synctest.Wait()
	return c
}

// pass lets the bubble's clock run on by d.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// member digs a raw member out of an upstream call's params.
func member(call *upstream.Call, path ...string) string {
	v := call.Params
	for _, name := range path {
		v = rawjson.Get(v, name)
	}
	return string(v)
}
