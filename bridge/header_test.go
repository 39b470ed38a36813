package bridge

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// ada is known to the server by a header of her own.
func ada() downstream.Caller {
	return downstream.Caller{Header: http.Header{
		"X-Api-Key": {"K1"}, "User-Agent": {"a client"}, "Traceparent": {"of one request"}, "Mcp-Session-Id": {"s"}, "X-Forwarded-For": {"192.0.2.1"},
	}}
}

// requestBy is request of a caller.
func requestBy(t *testing.T, conv *conversation, caller downstream.Caller, id, params string) *client {
	t.Helper()
	c := &client{t: t, conv: conv}
	go conv.Serve(t.Context(), caller, downstream.NewRequest(jsonrpc.Message{ID: jsonrpc.ID(id), Method: mcp.MethodToolsCall, Params: []byte(params)}), c)
	synctest.Wait()
	return c
}

// keyed fails if a request was sent without the key.
func keyed(t *testing.T, up *script, sent string) {
	t.Helper()
	if got := methods(up.calls()); got != sent {
		t.Errorf("sent %s", got)
	}
	for i, call := range up.calls() {
		if got := strings.Join(call.Header["X-Api-Key"], " "); got != "K1" {
			t.Errorf("request %d (%s) has the key %q", i, call.Method, got)
		}
	}
}

// A call is made for whom its client's headers name, however often it waits.
func TestACallThatHasWaitedGoesOnForWhomItWasMade(t *testing.T) {
	down := failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"})
	asks := inputRequired(`"s"`, question1("q"))
	for name, tt := range map[string]struct {
		steps []step
		meet  func(conv *conversation, c *client)
		sent  string
	}{
		"state alone": {[]step{result(`{"resultType":"input_required","requestState":"s"}`), result(booked)}, nil, "tools/call tools/call"},
		"a task": {[]step{result(taskCreated), result(`{"status":"working","taskId":"t1"}`), result(`{"status":"completed","taskId":"t1","result":{"content":[]}}`)},
			nil, "tools/call tasks/get tasks/get"},
		"a task that is cancelled": {[]step{result(taskCreated), result(`{}`)}, func(conv *conversation, _ *client) {
			conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":1}`)})
		}, "tools/call tasks/cancel"},
		"an outage after the answer": {[]step{asks, down, down, result(booked)}, func(conv *conversation, c *client) {
			conv.Answer(ada(), jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(accepted)})
		}, "tools/call tools/call tools/call tools/call"},
		"an answer that does not come": {[]step{asks, result(booked)}, func(*conversation, *client) { pass(30 * time.Minute) }, "tools/call tools/call"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, up := session(t, Limits{}, tt.steps...)
				conv.Server = &catalog.Server{Tasks: true, Version: string(mcp.V20260728)}
				c := requestBy(t, conv, ada(), "1", book)
				if tt.meet != nil {
					tt.meet(conv, c)
				}
				pass(20 * time.Second)
				if !c.over() {
					t.Error("it goes on")
				}
				keyed(t, up, tt.sent)
			})
		})
	}
}

// What one client's list promises of a tool holds for nobody whose headers the server may know as another's.
func TestWhatIsKnownOfToolsIsKnownOfAClientsOwn(t *testing.T) {
	harmless := `{"tools":[{"name":"x","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true}}]}`
	destructive := `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
	lost := failure(&upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "reset"})
	object := result(`{"resultType":"complete","content":[],"structuredContent":{"v":1}}`)
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, result(destructive), result(harmless), lost, object, lost, object)
		by := func(key, id, method string) *client {
			c := &client{t: t, conv: conv}
			caller := downstream.Caller{Header: http.Header{"X-Api-Key": {key}, "Traceparent": {id}}} // which is of one request
			go conv.Serve(t.Context(), caller, downstream.NewRequest(jsonrpc.Message{ID: jsonrpc.ID(id), Method: method, Params: []byte(`{"name":"x"}`)}), c)
			synctest.Wait()
			return c
		}
		by("K2", "1", mcp.MethodToolsList).result()
		by("K1", "2", mcp.MethodToolsList).result()
		by("K2", "3", mcp.MethodToolsCall).rpcError()
		if n := len(up.calls()); n != 3 {
			t.Fatalf("the tool ran %d times", n-2)
		}
		if got := by("K2", "4", mcp.MethodToolsCall).result(); !strings.Contains(got, `"structuredContent":{"v":1}`) {
			t.Errorf("the client with the schema of an object got %s", got)
		}
		if got := by("K1", "5", mcp.MethodToolsCall).result(); !strings.Contains(got, `"structuredContent":{"result":{"v":1}}`) || len(up.calls()) != 6 {
			t.Errorf("the client of the harmless tool got %s after %d requests", got, len(up.calls()))
		}
	})
}

// Whoever answers in the client's place has no headers.
func TestACallThatIsAnsweredElsewhereGoesOnForWhomItWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, _ := mute(t, ask.Decline, inputRequired(`"s"`, form1("q")), result(booked))
		requestBy(t, conv, ada(), "1", book).result()
		keyed(t, up, "tools/call tools/call")
	})
}

// What a call waits with is what its next request needs, of whatever process: no more of a request's headers.
func TestACallThatIsKeptGoesOnForWhomItWasMade(t *testing.T) {
	for name, meet := range map[string]func(*conversation, *client){
		"it waits": func(*conversation, *client) {},
		"a round is at work": func(conv *conversation, c *client) {
			conv.Answer(ada(), jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(accepted)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), hang)
				meet(conv, requestBy(t, conv, ada(), "1", book))
				synctest.Wait()
				record := string(conv.Flows()[0])
				for _, other := range []string{"Traceparent", "User-Agent", "Mcp-Session-Id", "192.0.2.1"} {
					if strings.Contains(record, other) {
						t.Errorf("%s is kept", other)
					}
				}
				conv.Close(nil)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")))
		requestBy(t, conv, ada(), "1", book)
		_, up, clients := elsewhere(t, conv, result(booked)) // with nobody's request, as when its time is up
		pass(30 * time.Minute)
		clients[0].result()
		keyed(t, up, "tools/call")
	})
}

// A task may take longer than its call's token is good for: its session's newest one goes on, of the same person.
func TestATaskGoesOnWithTheNewestTokenOfItsSession_H2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := result(`{"status":"completed","taskId":"t1","result":{"content":[]}}`)
		conv, up := withTaskServer(t, result(taskCreated), result(taskCreated), result(booked), done, done)
		conv.Principal = "ada"
		by := func(principal, token, id string) *client {
			return requestBy(t, conv, downstream.Caller{Principal: principal, Authorization: token, Unproven: principal != "ada"}, id, book)
		}
		tasks := []*client{by("ada", "t1", "1"), by("eve", "e1", "2")}
		by("ada", "t2", "3").result()
		pass(2 * time.Second)
		var tokens []string
		for i, call := range up.calls() {
			tokens = append(tokens, call.Authorization)
			if i < len(tasks) {
				tasks[i].result()
			}
		}
		if slices.Sort(tokens[3:]); strings.Join(tokens, " ") != "t1 e1 t2 e1 t2" {
			t.Error(tokens)
		}
	})
}

// An older token of a session, good for a little longer, may come after a newer one: its calls outlive it. Credentials that
// nobody has proven bring no other's along.
func TestACallOutlivesAnOlderTokenThatCameLate_H2(t *testing.T) {
	for name, tc := range map[string]struct {
		begun step
		then  string // what its next request gets
	}{
		"a task":  {result(taskCreated), `{"status":"completed","taskId":"t1","result":` + booked + `}`},
		"a round": {result(`{"resultType":"input_required","requestState":"s"}`), booked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				judge := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
					if call.Authorization != "t2" {
						return failure(&upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized})(ctx, call, notify)
					}
					return result(tc.then)(ctx, call, notify)
				}
				conv, up := withTaskServer(t, tc.begun, result(booked), judge, judge, judge)
				conv.Principal = "ada"
				by := func(token, id string) *client {
					return requestBy(t, conv, downstream.Caller{Principal: "ada", Authorization: token}, id, book)
				}
				c := by("t2", "1")
				by("t1", "2").result()
				pass(3 * time.Second)
				var tokens []string
				for _, call := range up.calls() {
					tokens = append(tokens, call.Authorization)
				}
				if !c.over() || c.response == nil || c.response.Error != nil || strings.Join(tokens, " ") != "t2 t1 t1 t2" {
					t.Errorf("over %v, refused %+v, with %q", c.over(), c.refused, tokens)
				}
			})
		})
	}
}

// Who has forged a token gets nothing done with the one that it replaced.
func TestAForgedAnswerGoesUpWithNobodyElsesToken_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := failure(&upstream.Failure{Cause: upstream.Unauthorized, Status: http.StatusUnauthorized})
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(booked), refuses, refuses)
		conv.Principal = "ada"
		c := requestBy(t, conv, downstream.Caller{Principal: "ada", Authorization: "t1"}, "1", book)
		requestBy(t, conv, downstream.Caller{Principal: "ada", Authorization: "t2"}, "2", book).result()
		conv.Answer(downstream.Caller{Principal: "ada", Authorization: "forged", Unproven: true}, jsonrpc.Message{ID: c.asked()[0].ID, Result: []byte(accepted)})
		synctest.Wait()
		if n := len(up.calls()); n != 3 || up.calls()[2].Authorization != "forged" {
			t.Errorf("%d requests, the last with %q", n, up.calls()[n-1].Authorization)
		}
	})
}
