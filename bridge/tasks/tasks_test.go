package tasks

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// unheld holds nothing for a task.
func unheld() (release func()) { return func() {} }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is who sent a tasks/result.
type client struct {
	downstream.Reply
	mu        sync.Mutex
	got       []string
	abandoned bool
	away      bool          // it has no connection
	slow      chan struct{} // it reads nothing until this is closed; nil: it reads
}

func (c *client) Reachable() bool { return true }
func (c *client) Attached() bool  { return !c.away }
func (c *client) Abandon()        { c.mu.Lock(); c.abandoned = true; c.mu.Unlock() }

func (c *client) Send(msg downstream.Message) {
	if c.slow != nil {
		<-c.slow
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, string(msg.AppendTo(nil)))
}

func (c *client) Finish(msg downstream.Message) { c.Send(msg) }

func progress(text string) downstream.Message {
	return downstream.Notification(mcp.NotificationProgress, []byte(`{"message":"`+text+`"}`))
}

func statusOf(t *Task) string {
	status, _ := rawjson.Text(rawjson.Get(t.Describe(), "status"))
	return status
}

// add returns a task of the set whose call counts its cancellations.
func add(t *testing.T, s *Set) (*Task, *int) {
	task, n := New(nil, nil, 0), new(int)
	if err := s.Add(task, func() { *n++; task.Abandon() }, unheld); err != nil {
		t.Fatal(err)
	}
	return task, n
}

func TestAClientThatReadsSlowlyHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		task, cancelled := add(t, &s)
		slow := &client{slow: make(chan struct{})}
		if err := task.Wait("1", slow); err != nil {
			t.Fatal(err)
		}
		go task.Send(progress("a"))
		synctest.Wait()
		task.Send(progress("b")) // returns, as does all that follows
		if _, err := s.List(nil); err != nil || statusOf(task) != "working" {
			t.Error("the task cannot be looked at")
		}
		if err := task.Cancel(); err != nil || *cancelled != 1 {
			t.Errorf("cancelled %d times: %v", *cancelled, err)
		}
		close(slow.slow)
		synctest.Wait()
		if all := strings.Join(slow.got, "\n"); len(slow.got) != 3 || !strings.Contains(slow.got[0], `"a"`) || !strings.Contains(slow.got[2], `"id":1`) {
			t.Errorf("what the client got, in order: %s", all)
		}
	})
}

// TestWhoeverWaitsIsAskedOnce: the newest request that a client listens to, and each after it.
func TestWhoeverWaitsIsAskedOnce(t *testing.T) {
	task := New(nil, nil, 0)
	clients := make([]*client, 4)
	for i := range clients {
		clients[i] = &client{}
	}
	wait := func(i int) {
		if err := task.Wait(jsonrpc.ID(fmt.Sprint(i)), clients[i]); err != nil {
			t.Fatal(err)
		}
	}
	wait(0)
	wait(1)
	clients[1].away = true
	task.Send(downstream.Question(`"a"`, mcp.MethodElicitationCreate, nil))
	wait(2)
	task.Send(downstream.Question(`"b"`, mcp.MethodElicitationCreate, nil))
	task.leave("2")
	task.Answered(`"a"`)
	wait(3)
	for i, want := range []string{`"a""b"`, ``, `"a""b"`, `"b"`} {
		got := ""
		for _, text := range clients[i].got {
			got += string(rawjson.Get([]byte(text), "id"))
		}
		if got != want {
			t.Errorf("request %d was asked %s, want %s", i, got, want)
		}
	}
	if task.Answered(`"b"`); statusOf(task) != working {
		t.Error(statusOf(task))
	}
	task.Abandon()
}

func TestAPanicOfAWriterLeavesTheTaskUsable(t *testing.T) {
	task := New(nil, nil, 0)
	if err := task.Wait("1", &panicking{}); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		task.Send(progress("a"))
	}()
	task.leave("1")
	task.Abandon()
	if statusOf(task) != "cancelled" {
		t.Error("the task did not end")
	}
}

type panicking struct{ client }

func (*panicking) Send(downstream.Message) { panic("a fault") }

func TestWhatWaitsForAClientIsBounded(t *testing.T) {
	task := New(nil, nil, 0)
	for range 10 {
		task.Send(progress(strings.Repeat("x", maxQueuedBytes/4)))
	}
	for i := range 1000 {
		task.Send(progress(fmt.Sprint(i)))
	}
	if len(task.queue) > maxQueue || task.queued > maxQueuedBytes {
		t.Errorf("%d messages of %d bytes wait", len(task.queue), task.queued)
	}
	task.Send(downstream.Question("7", mcp.MethodElicitationCreate, nil)) // is never dropped
	c := &client{}
	if err := task.Wait("1", c); err != nil || task.queued != 0 {
		t.Fatalf("%d bytes wait still, %v", task.queued, err)
	}
	if last := c.got[len(c.got)-1]; !strings.Contains(last, `"id":7`) {
		t.Errorf("the last message is %.80s", last)
	}
}

func TestAnEndedTaskHoldsNeitherItsCallNorItsMessages(t *testing.T) {
	var s Set
	task, cancelled := add(t, &s)
	task.Send(progress("a"))
	task.Finish(downstream.Result("1", []byte(`{"content":[]}`)))
	task.Send(progress("late"))
	if task.cancel != nil || task.queue != nil || task.queued != 0 {
		t.Error("something is held")
	}
	if err := task.Cancel(); !errors.Is(err, ErrOver) || *cancelled != 0 {
		t.Errorf("cancelled after the end: %v", err)
	}
	task.Abandon()
	if got := statusOf(task); got != "completed" {
		t.Errorf("a second end made it %s", got)
	}
}

func TestAWithdrawnQuestionIsNotAsked(t *testing.T) {
	task := New(nil, nil, 0)
	task.Send(downstream.Question("7", mcp.MethodElicitationCreate, []byte(`{"message":"Sure?"}`)))
	if got := statusOf(task); got != "input_required" {
		t.Fatalf("got %s", got)
	}
	task.Send(downstream.Notification(mcp.NotificationCancelled, []byte(`{"requestId":7}`)))
	c := &client{}
	if err := task.Wait("1", c); err != nil || len(c.got) != 0 || statusOf(task) != "working" {
		t.Errorf("the client got %v, the task is %s", c.got, statusOf(task))
	}
	task.Send(downstream.Question("8", mcp.MethodElicitationCreate, nil))
	task.Answered(jsonrpc.ID("8"))
	if got := statusOf(task); got != "working" {
		t.Errorf("after the answer it is %s", got)
	}
}

// What waits for a tasks/result is charged until one has come for it.
func TestATaskIsChargedForWhatWaits(t *testing.T) {
	memory := budget.New(10 << 20)
	task := New(nil, memory.Guest("somebody"), 0)
	defer task.forget()
	for i := range 3 {
		task.Send(progress(strings.Repeat("x", 100_000)))
		if memory.Used() < 100_000 {
			t.Errorf("%d bytes are charged for what waits", memory.Used())
		}
		id, c := jsonrpc.ID(fmt.Sprint(i)), &client{}
		if err := task.Wait(id, c); err != nil || len(c.got) != 1 {
			t.Fatal(err, len(c.got))
		}
		if memory.Used() != 0 {
			t.Errorf("%d bytes are charged for what was sent", memory.Used())
		}
		task.leave(id)
	}
	task.Send(progress("unheard"))
	if task.Abandon(); memory.Used() > 1000 {
		t.Errorf("%d bytes are charged for what nobody will get", memory.Used())
	}
}

func TestATaskIsChargedForItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(10 << 10)
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		var s Set
		finished := func(size int) *Task {
			task := New([]byte(`{"ttl":0}`), account, 0)
			if err := s.Add(task, func() {}, unheld); err != nil {
				t.Fatal(err)
			}
			task.Finish(downstream.Result("1", []byte(`{"text":"`+strings.Repeat("x", size)+`"}`)))
			return task
		}
		if got := statusOf(finished(4 << 10)); got != completed || memory.Used() < 4<<10 {
			t.Errorf("%s, %d bytes charged", got, memory.Used())
		}
		if got := statusOf(finished(4 << 10)); got != failed {
			t.Errorf("one that is too much: %s", got)
		}
		time.Sleep(time.Millisecond) // the ttl is over
		if !s.Empty() || memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}
