package again_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a request that waits.
type client struct {
	mu   sync.Mutex
	said []downstream.Message
	end  *downstream.Message
	gone bool
	left bool // its connection broke
}

func (*client) Interactive() bool                     { return true }
func (c *client) Queue(msg downstream.Message)        { c.Send(msg) }
func (*client) Flush()                                {}
func (*client) Refuse(*downstream.Refusal) bool       { return true }
func (*client) Address() downstream.Address           { return downstream.Address{Session: "s", Stream: 7} }
func (*client) Reachable() bool                       { return false }
func (c *client) Attached() bool                      { return !c.left }
func (c *client) Delivered() bool                     { return !c.left && c.end != nil }
func (*client) Checkpointer() downstream.Checkpointer { return nil }
func (*client) Continue(work func())                  { work() }
func (*client) Outlast() (over func())                { return func() {} }

func (c *client) Send(msg downstream.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, msg)
}

func (c *client) Finish(msg downstream.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = &msg
}

func (c *client) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

func (c *client) heard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, msg := range c.said {
		b.Write(msg.AppendTo(nil))
	}
	return b.String()
}

// flow takes the events of a call, which is its user's.
type flow struct {
	user   string
	events []string

	busy     bool // at the server, or with the answer
	detached int  // from the request that it began with
}

func (f *flow) Detach(leave func() bool) {
	if !f.busy && leave() {
		f.detached++
	}
}

func (f *flow) Drive(ev mrtr.Event) { f.events = append(f.events, ev.String()) }
func (f *flow) Person() string      { return "" }

func (f *flow) By(caller downstream.Caller) bool { return caller.Principal == f.user }
func (f *flow) Close(cause error)                { f.Drive(mrtr.Failed(cause)) }
func (f *flow) Renew(downstream.Caller)          {}
func (f *flow) Outlives()                        { f.detached++ }
func (f *flow) Size() int                        { return len(book) }

type session struct{}

func (session) Hears(string) bool                    { return true }
func (session) Detached(*downstream.Request, string) {}
func (session) Background(work func())               { work() }

const book = `{"name":"book","arguments":{"a":1,"b":2}}`

func request(id, params string) downstream.Request {
	return downstream.NewRequest(jsonrpc.Message{ID: jsonrpc.ID(id), Method: mcp.MethodToolsCall, Params: []byte(params)})
}

// kept is a call of Ada's that waits for a page for a minute.
func kept(calls *again.Replies, stranger string) (*again.Reply, *client, *flow) {
	out, f := &client{}, &flow{user: "ada"}
	p := again.New(again.Options{Session: session{}, Calls: calls, Stranger: stranger, Version: mcp.V20251125, Wait: time.Minute}, request("1", book), out)
	p.Bind(f)
	return p, out, f
}

func ada() downstream.Caller { return downstream.Caller{Principal: "ada"} }

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func rejoin(calls *again.Replies, caller downstream.Caller, id, params string) (*again.Rejoined, *client) {
	out, req := &client{}, request(id, params)
	return calls.Rejoin("", mcp.V20251125, caller, &req, out), out
}

// A request whose time is over while a question is open is answered with the link; the
// same call goes on, and what was answered meanwhile counts then.
func TestACallOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		p, first, f := kept(&calls, "")
		p.Linked("q", "https://bridge/page")
		if p.Hold(mrtr.Answered("q", nil)) {
			t.Error("an answer was held back although the request waits")
		}
		pass(time.Minute)
		if first.end == nil || !strings.Contains(string(first.end.Result), "https://bridge/page") || p.Waits() || p.GoesBy() != "" {
			t.Fatalf("the first request got %+v", first.end)
		}
		if !p.Hold(mrtr.Answered("q", []byte(`{}`))) || !p.Reachable() {
			t.Error("an answer that nobody waits for was not held back")
		}
		if f.detached != 1 || p.Size() != len(book)+len(`{}`) {
			t.Errorf("told %d times that its request is over, it keeps %d bytes", f.detached, p.Size())
		}
		before := len(f.events)
		again, second := rejoin(&calls, ada(), "2", `{"arguments":{"b":2,"a":1},"name":"book","_meta":{"progressToken":9}}`)
		if again == nil || len(f.events) != before {
			t.Fatal("the same call is another")
		}
		again.GoOn()
		if !strings.Contains(strings.Join(f.events[before:], " "), "input") {
			t.Errorf("the answer does not count: %v", f.events[before:])
		}
		p.Finish(downstream.Result("1", []byte(`{"content":[]}`)))
		if second.end == nil || second.end.ID != "2" || calls.Len() != 0 {
			t.Errorf("the second request got %+v", second.end)
		}
	})
}

// A call that is about to be answered has its request wait for that.
func TestTheAnswerOfACallGoesToTheRequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		p, first, f := kept(&calls, "")
		f.busy = true
		p.Linked("q", "https://bridge/page")
		pass(time.Minute)
		if p.Finish(downstream.Result("1", []byte(`{"content":[]}`))); first.end == nil || string(first.end.Result) != `{"content":[]}` {
			t.Errorf("the request got %+v", first.end)
		}
	})
}

func TestWhoeverAsksForAnotherCallIsNotRejoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		p, _, _ := kept(&calls, "")
		p.Linked("q", "https://bridge/page")
		pass(time.Minute)
		for what, params := range map[string]string{
			"other arguments": `{"name":"book","arguments":{"a":1,"b":3}}`, "another tool": `{"name":"look","arguments":{"a":1,"b":2}}`,
		} {
			if got, _ := rejoin(&calls, ada(), "2", params); got != nil {
				t.Errorf("%s go on with the call", what)
			}
		}
		if got, _ := rejoin(&calls, downstream.Caller{Principal: "bob"}, "2", book); got != nil {
			t.Error("another user goes on with the call")
		}
		got, _ := rejoin(&calls, ada(), "2", book)
		if more, _ := rejoin(&calls, ada(), "3", book); got == nil || more != nil {
			t.Error("two requests wait for one call")
		}
		p.Abandon()
	})
}

// A request is compared with the calls that wait by what is noted of each: their params are not gone
// over for it.
func TestLookingForTheSameCallAllocatesNoMoreForManyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		params := func(i int) string {
			return fmt.Sprintf(`{"name":"book","arguments":{"a":[%s%d]}}`, strings.Repeat("0,", 1000), i)
		}
		look := func(waiting int) float64 {
			var calls again.Replies
			for i := range waiting {
				p := again.New(again.Options{Session: session{}, Calls: &calls, Version: mcp.V20251125, Wait: time.Minute}, request("1", params(i)), &client{})
				p.Bind(&flow{user: "ada"})
				p.Linked("q", "https://bridge/page")
				defer p.Abandon()
			}
			pass(time.Minute)
			if calls.Len() != waiting {
				t.Fatalf("%d of %d calls wait", calls.Len(), waiting)
			}
			out, req, ada := &client{}, request("2", params(waiting)), ada()
			allocs := testing.AllocsPerRun(10, func() {
				if calls.Rejoin("", mcp.V20251125, ada, &req, out) != nil {
					t.Error("another call goes on")
				}
			})
			if got, _ := rejoin(&calls, ada, "3", params(waiting-1)); got == nil {
				t.Error("the same call does not go on")
			}
			return allocs
		}
		if one, many := look(1), look(32); many > one {
			t.Errorf("beside 32 calls that wait %v allocations, beside one %v", many, one)
		}
	})
}

// Progress goes by the token of the request that waits; to one without a token it does not go.
func TestProgressIsThatOfTheRequestThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		p, _, _ := kept(&calls, "")
		p.Linked("q", "https://bridge/page")
		pass(time.Minute)
		_, second := rejoin(&calls, ada(), "2", `{"name":"book","arguments":{"a":1,"b":2},"_meta":{"progressToken":"x"}}`)
		p.Send(downstream.Notification(mcp.NotificationProgress, []byte(`{"progressToken":1,"progress":3}`)))
		if got := second.heard(); !strings.Contains(got, `"progressToken":"x"`) || !strings.Contains(got, `"progress":3`) {
			t.Errorf("the second request heard %s", got)
		}
		pass(time.Minute)
		_, third := rejoin(&calls, ada(), "3", book)
		p.Send(downstream.Notification(mcp.NotificationProgress, []byte(`{"progressToken":1,"progress":4}`)))
		if got := third.heard(); got != "" {
			t.Errorf("a request without a token heard %s", got)
		}
		p.Abandon()
		if !third.gone {
			t.Error("the end reached nobody")
		}
	})
}

// A principal without a session may have so many; the oldest makes room. All end with the
// bridge.
func TestStrangersCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		calls.Limit(1)
		old, _, first := kept(&calls, "ada")
		old.Linked("q", "https://bridge/page")
		pass(time.Minute)
		young, _, second := kept(&calls, "ada")
		young.Linked("q", "https://bridge/page")
		pass(time.Minute)
		if got := strings.Join(first.events, " "); !strings.Contains(got, "failed") {
			t.Errorf("the oldest goes on: %s", got)
		}
		old.Finish(downstream.Message{})
		calls.Close(errors.New("over"))
		if got := strings.Join(second.events, " "); calls.Len() != 1 || !strings.Contains(got, "failed") {
			t.Errorf("%d wait; the other one: %s", calls.Len(), got)
		}
		young.Finish(downstream.Message{})
	})
}

// A question that the client was asked is shown again; one that is settled is not.
func TestOpenQuestionsAreShownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		p, _, _ := kept(&calls, "")
		p.Send(downstream.Question(`"one"`, mcp.MethodElicitationCreate, []byte(`{"message":"one?"}`)))
		p.Send(downstream.Question(`"two"`, mcp.MethodElicitationCreate, []byte(`{"message":"two?"}`)))
		p.Send(downstream.Notification(mcp.NotificationCancelled, []byte(`{"requestId":"two"}`)))
		p.Linked("q", "https://bridge/page")
		pass(time.Minute)
		again, second := rejoin(&calls, ada(), "2", book)
		again.GoOn()
		if got := second.heard(); !strings.Contains(got, "one?") || strings.Contains(got, "two?") || !strings.Contains(got, "https://bridge/page") {
			t.Errorf("shown again: %s", got)
		}
		p.Abandon()
	})
}
