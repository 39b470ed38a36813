package dialect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is an upstream client that answers as its function does.
type stub func(ctx context.Context, call *upstream.Call) (*upstream.Answer, error)

func (s stub) Do(ctx context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	return s(ctx, call)
}
func (s stub) Listen(context.Context, *upstream.Call, func(jsonrpc.Message)) error { return nil }
func (s stub) Close() error                                                        { return nil }

// answering is a stub that always gives one result.
func answering(result string) stub {
	return func(context.Context, *upstream.Call) (*upstream.Answer, error) {
		return &upstream.Answer{Result: []byte(result)}, nil
	}
}

func ask(t *testing.T, d *Dialect, inner upstream.Caller, method, params string) *upstream.Answer {
	t.Helper()
	ans, err := d.Caller(inner).Do(t.Context(), &upstream.Call{Method: method, Params: []byte(params)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

func TestI3TheLatestListOfVersionsCounts(t *testing.T) {
	d := New(Options{})
	for _, step := range []struct {
		versions string
		active   bool
	}{{`"2026-07-28"`, false}, {`"2026-07-28","2026-06-30"`, true}, {`"DRAFT-2026-v1"`, true}, {`"2026-07-28","2025-11-25"`, false}} {
		ask(t, d, answering(`{"supportedVersions":[`+step.versions+`]}`), mcp.MethodDiscover, `{}`)
		if d.Active() != step.active {
			t.Errorf("after %s: %v", step.versions, d.Active())
		}
	}
}

func TestI3ConfigurationOverrulesTheServer(t *testing.T) {
	refusal := &jsonrpc.Error{Code: -32004, Data: []byte(`{"supported":["2026-06-30"],"requested":"2026-07-28"}`)}
	for mode, want := range map[Mode]struct {
		code    int
		version string
		active  bool
	}{
		Auto: {mcp.CodeUnsupportedVersion, "2026-06-30", true},
		On:   {mcp.CodeUnsupportedVersion, "2026-06-30", true},
		Off:  {-32004, "", false},
	} {
		d := New(Options{Mode: mode})
		if got := d.Error(400, refusal); got.Code != want.code {
			t.Errorf("%s: code %d", mode, got.Code)
		}
		if got := d.Version([]byte(`["2026-06-30"]`)); got != want.version {
			t.Errorf("%s: version %q", mode, got)
		}
		ask(t, d, answering(`{"supportedVersions":["2026-06-30"]}`), mcp.MethodDiscover, `{}`)
		if d.Active() != want.active {
			t.Errorf("%s: active %v", mode, d.Active())
		}
	}
	d := New(Options{Mode: On})
	ask(t, d, answering(`{"supportedVersions":["2026-07-28"]}`), mcp.MethodDiscover, `{}`)
	if !d.Active() {
		t.Error("on: the draft ended by itself")
	}
}

// TestFinalServersCostNothing: no allocation and no look at the payload.
func TestFinalServersCostNothing(t *testing.T) {
	ans := &upstream.Answer{Result: []byte(`no JSON at all`)}
	c := New(Options{}).Caller(stub(func(context.Context, *upstream.Call) (*upstream.Answer, error) { return ans, nil }))
	call := &upstream.Call{Method: mcp.MethodToolsCall, Params: []byte(`neither`)}
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Do(t.Context(), call, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestI10WhoHasManyTasksHasNobodyElsesForgotten(t *testing.T) {
	var book tasks
	note := func(principal string, i int) {
		if err := book.note(taskKey{principal: principal, id: fmt.Sprint(i)}, []byte(`{"requestState":"s"}`), false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		note("modest", i)
	}
	for i := range 3 * maxTasks {
		note("greedy", i)
	}
	modest := 0
	for key := range book.known {
		if key.principal == "modest" {
			modest++
		}
	}
	if modest != 100 || len(book.known) != maxTasks {
		t.Errorf("%d of 100 tasks of who has few, %d in all", modest, len(book.known))
	}
}

func TestI10TheBookOfTasksIsBounded(t *testing.T) {
	d := New(Options{Mode: On})
	for i := range maxTasks + 10 {
		ask(t, d, answering(fmt.Sprintf(`{"resultType":"task","taskId":"%d","status":"working","requestState":"s"}`, i)), mcp.MethodToolsCall, `{}`)
	}
	if n := len(d.tasks.known); n != maxTasks {
		t.Errorf("%d tasks are remembered", n)
	}
	long := strings.Repeat("s", maxState)
	for _, large := range []string{`"taskId":"t","requestState":"` + long + `"`, `"taskId":"` + long + `","requestState":"s"`} {
		_, err := d.Caller(answering(`{"resultType":"task","status":"working",`+large+`}`)).Do(t.Context(), &upstream.Call{Method: mcp.MethodToolsCall}, nil)
		if violation := (*mrtr.Violation)(nil); !errors.As(err, &violation) || violation.Rule != "I-10" {
			t.Errorf("got %v", err)
		}
	}
}

// TestI10NothingIsKeptOfTasksThatAreOver, whichever way they ended.
func TestI10NothingIsKeptOfTasksThatAreOver(t *testing.T) {
	created := answering(`{"resultType":"task","taskId":"t","status":"working","requestState":"s"}`)
	gone := stub(func(context.Context, *upstream.Call) (*upstream.Answer, error) {
		return &upstream.Answer{Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}}, nil
	})
	for name, end := range map[string]struct {
		method string
		inner  upstream.Caller
	}{
		"completed": {mcp.MethodTasksGet, answering(`{"taskId":"t","status":"completed","result":{},"requestState":"s2"}`)},
		"fetched":   {mcp.MethodTasksGet, payload(answering(`{"content":[]}`))},
		"cancelled": {mcp.MethodTasksCancel, answering(`{}`)},
		"unknown":   {mcp.MethodTasksGet, gone},
	} {
		d := New(Options{Mode: On})
		ask(t, d, created, mcp.MethodToolsCall, `{}`)
		if len(d.tasks.known) != 1 {
			t.Fatal("the task is not remembered")
		}
		ask(t, d, end.inner, end.method, `{"taskId":"t"}`)
		if len(d.tasks.known) != 0 {
			t.Errorf("%s: still remembered", name)
		}
	}
}

// payload is a server whose task t is over and which answers tasks/result as
// inner does.
func payload(inner stub) stub {
	return func(ctx context.Context, call *upstream.Call) (*upstream.Answer, error) {
		if call.Method == mcp.MethodTasksResult {
			return inner(ctx, call)
		}
		return answering(`{"taskId":"t","status":"completed"}`)(ctx, call)
	}
}

// TestI14AHeldBackResultIsAskedForAgain: some servers answer tasks/result only
// when the task is over, whatever tasks/get says.
func TestI14AHeldBackResultIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := []byte(`{"taskId":"t","status":"input_required"}`)
		inner := stub(func(ctx context.Context, call *upstream.Call) (*upstream.Answer, error) {
			if call.Method == mcp.MethodTasksGet {
				return &upstream.Answer{Result: state}, nil
			}
			<-ctx.Done()
			return nil, &upstream.Failure{Cause: upstream.Timeout, Err: ctx.Err()}
		})
		began := time.Now()
		ans := ask(t, New(Options{Mode: On}), inner, mcp.MethodTasksGet, `{"taskId":"t"}`)
		if string(ans.Result) != string(state) || time.Since(began) != payloadTimeout {
			t.Errorf("%s after %v", ans.Result, time.Since(began))
		}
	})
}

// Servers may number the tasks of each person: those behind one principal are told apart by their headers.
func TestI10TheStateOfATaskIsOfThePersonWhoseItIs(t *testing.T) {
	d := New(Options{Mode: On})
	person := func(user, method, params string, answer string) (sent string) {
		c := d.Caller(stub(func(_ context.Context, call *upstream.Call) (*upstream.Answer, error) {
			sent = string(rawjson.Get(call.Params, "requestState"))
			return &upstream.Answer{Result: []byte(answer)}, nil
		}))
		call := &upstream.Call{Method: method, Params: []byte(params), Principal: "gateway", Header: http.Header{"X-Auth-Request-User": {user}}}
		if _, err := c.Do(t.Context(), call, nil); err != nil {
			t.Fatal(err)
		}
		return sent
	}
	for _, user := range []string{"alice", "bob"} {
		person(user, mcp.MethodToolsCall, `{}`, `{"resultType":"task","taskId":"1","status":"working","requestState":"`+user+`"}`)
	}
	for _, user := range []string{"alice", "bob"} {
		working := `{"taskId":"1","status":"working","requestState":"` + user + `"}`
		if got := person(user, mcp.MethodTasksGet, `{"taskId":"1"}`, working); got != `"`+user+`"` {
			t.Errorf("%s's task is asked for with %s", user, got)
		}
	}
}
