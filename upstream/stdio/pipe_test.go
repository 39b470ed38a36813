package stdio

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// wire is a pipe whose far end is the test.
type wire struct {
	*pipe
	t   *testing.T
	in  *bufio.Reader // what the client wrote
	out io.WriteCloser
}

// withWire runs a test on a pipe under a fake clock.
func withWire(t *testing.T, f func(t *testing.T, w *wire)) {
	synctest.Test(t, func(t *testing.T) {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		p := newPipe(1<<21, nil, zerolog.Nop())
		go p.write(fromClient)
		go func() { p.read(toClient); p.end() }()
		f(t, &wire{pipe: p, t: t, in: bufio.NewReader(toServer), out: fromServer})
		_ = fromServer.Close()
		_ = toServer.Close()
		synctest.Wait()
	})
}

// receive reads the client's next line.
func (w *wire) receive() jsonrpc.Message {
	w.t.Helper()
	line, err := w.in.ReadBytes('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := jsonrpc.Parse(line)
	if err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	return m
}

func (w *wire) send(format string, args ...any) {
	_, _ = fmt.Fprintf(w.out, format+"\n", args...)
	synctest.Wait()
}

type result struct {
	ans  *upstream.Answer
	err  error
	seen []string
}

// begin makes a call and returns where its outcome will be.
func (w *wire) begin(ctx context.Context, cl *upstream.Call, listen bool) (jsonrpc.ID, <-chan result) {
	done := make(chan result, 1)
	go func() {
		var r result
		r.ans, r.err = w.do(ctx, requestOf(cl), sink{listen: listen, notify: func(m jsonrpc.Message) {
			r.seen = append(r.seen, strings.TrimPrefix(m.Method, "notifications/"))
		}})
		done <- r
	}()
	return w.receive().ID, done
}

func withMeta(name, member string) *upstream.Call {
	cl := tool(name)
	cl.Params = []byte(strings.Replace(string(cl.Params), `"_meta":{`, `"_meta":{`+member+`,`, 1))
	return cl
}

func TestE46OneChannelServesManyRequests(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		w.sole = true
		a, doneA := w.begin(t.Context(), withMeta("a", `"progressToken":1`), false)
		b, doneB := w.begin(t.Context(), withMeta("b", `"progressToken":"1"`), false)
		w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, b)
		w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1}}`) // only its client says so
		w.send(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{}}`)                                   // whose?
		w.send(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, a)                                                    // C-10
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{"of":"b"}}`, b)
		w.send(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{}}`) // a's, now
		w.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, a)
		ra, rb := <-doneA, <-doneB
		if rb.err != nil || string(rb.ans.Result) != `{"of":"b"}` || strings.Join(rb.seen, " ") != "progress" {
			t.Errorf("b: %+v", rb)
		}
		if ra.err != nil || ra.ans.Error.Code != -32602 || strings.Join(ra.seen, " ") != "vendor" {
			t.Errorf("a: %+v", ra)
		}
	})
}

// TestTokensOnAChannel: callers who have the same one, who have one that is the id of somebody else's request, and who
// have none that counts.
func TestTokensOnAChannelAreItsOwn_E46(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		var ids []jsonrpc.ID
		heard := make(chan string, 9)
		for _, token := range []string{`"m1"`, `"m1"`, `ID`, ` 1.0`, `[1]`, `null`} {
			if token == "ID" {
				token = string(ids[0])
			}
			go func() {
				_, _ = w.do(t.Context(), requestOf(withMeta("a", `"k":1,"progressToken":`+token)), sink{notify: func(m jsonrpc.Message) {
					heard <- fmt.Sprintf("%s=%s", token, m.Params)
				}})
			}()
			msg := w.receive()
			ids = append(ids, msg.ID)
			got, want := string(rawjson.Get(rawjson.Get(msg.Params, "_meta"), "progressToken")), string(msg.ID)
			if token == "[1]" || token == "null" {
				want = token
			}
			if got != want {
				t.Errorf("request %s with the token %s has %s on the channel", msg.ID, token, got)
			}
			w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":%s}}`, got)
			select {
			case told := <-heard:
				if told != token+`={"progress":1,"progressToken":`+strings.TrimSpace(token)+`}` {
					t.Errorf("told %s", told)
				}
			default:
				if got == string(msg.ID) {
					t.Errorf("nothing is told under %s", token)
				}
			}
		}
		for _, token := range []string{`"m1"`, `"p1-0"`, `1.0`, `1`} { // as clients know them
			w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":%s}}`, token)
		}
		if len(heard) > 0 {
			t.Errorf("told %s", <-heard)
		}
		for _, id := range ids {
			w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		}
	})
}

func TestC8LogsAreDeliveredOnlyWhenTheirOwnerIsCertain(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		const logs = `"` + mcp.MetaLogLevel + `":"info"`
		const line = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
		a, doneA := w.begin(t.Context(), withMeta("a", logs), false)
		b, doneB := w.begin(t.Context(), tool("b"), false)
		w.send(line)
		c, doneC := w.begin(t.Context(), withMeta("c", logs), false)
		w.send(line)
		for _, id := range []jsonrpc.ID{a, b, c} {
			w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		}
		if ra, rb, rc := <-doneA, <-doneB, <-doneC; len(ra.seen) != 1 || len(rb.seen) != 0 || len(rc.seen) != 0 {
			t.Errorf("a %v, b %v, c %v", ra.seen, rb.seen, rc.seen)
		}
	})
}

// Two requests of one session are one owner, and so are all of a process that is for one session.
func TestC8LogsReachASessionWithSeveralCallsUnderWay(t *testing.T) {
	for name, tc := range map[string]struct {
		sessions [2]any
		sole     bool
		heard    int
	}{
		"one session":        {[2]any{"s", "s"}, false, 1},
		"two sessions":       {[2]any{"s", "t"}, false, 0},
		"without sessions":   {[2]any{}, false, 0},
		"one and without":    {[2]any{"s", nil}, false, 0},
		"a process of one's": {[2]any{}, true, 1},
	} {
		withWire(t, func(t *testing.T, w *wire) {
			w.sole = tc.sole
			var ids [2]jsonrpc.ID
			var done [2]<-chan result
			for i, session := range tc.sessions {
				call := withMeta(string(rune('a'+i)), `"`+mcp.MetaLogLevel+`":"info"`)
				call.Session = session
				ids[i], done[i] = w.begin(t.Context(), call, false)
			}
			w.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
			heard := 0
			for i, id := range ids {
				w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
				heard += len((<-done[i]).seen)
			}
			if heard != tc.heard {
				t.Errorf("%s: heard %d times", name, heard)
			}
		})
	}
}

func TestE47CancellationIsANotificationAndTheLateAnswerIsIgnored(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		ctx, cancel := context.WithCancel(t.Context())
		a, doneA := w.begin(ctx, tool("a"), false)
		cancel()
		m := w.receive()
		if m.Method != mcp.NotificationCancelled || string(rawjson.Get(m.Params, "requestId")) != string(a) || m.ID != "" {
			t.Fatalf("%+v", m)
		}
		if f, ok := (<-doneA).err.(*upstream.Failure); !ok || f.Cause != upstream.Canceled {
			t.Fatalf("error %v", f)
		}
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, a)
		b, doneB := w.begin(t.Context(), tool("b"), false)
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, b)
		if r := <-doneB; r.err != nil {
			t.Fatal(r.err)
		}
	})
}

func TestADeadlineCancelsTheRequestUpstream(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, done := w.begin(ctx, tool("a"), false)
		if m := w.receive(); m.Method != mcp.NotificationCancelled {
			t.Fatalf("%+v", m)
		}
		if f, ok := (<-done).err.(*upstream.Failure); !ok || f.Cause != upstream.Timeout {
			t.Fatalf("error %v", f)
		}
	})
}

func TestC18ListensAreToldApartBySubscription(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		event := func(what string, id jsonrpc.ID, quote string) {
			w.send(`{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"%s":%s%s%s}}}`, what, mcp.MetaSubscriptionID, quote, id, quote)
		}
		a, doneA := w.begin(t.Context(), call(mcp.MethodListen, ""), true)
		b, doneB := w.begin(t.Context(), call(mcp.MethodListen, ""), true)
		c, doneC := w.begin(t.Context(), tool("c"), false)
		event("subscriptions/acknowledged", b, "")
		event("subscriptions/acknowledged", a, `"`)
		event("tools/list_changed", a, "")
		event("tools/list_changed", c, "")                                                                         // no listen
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"bye"}}`, b) // C-19
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, c)                // ignored
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, a)
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, c)
		ra, rb, rc := <-doneA, <-doneB, <-doneC
		if ra.err != nil || strings.Join(ra.seen, " ") != "subscriptions/acknowledged tools/list_changed" {
			t.Errorf("a: %+v", ra)
		}
		if f, ok := rb.err.(*upstream.Failure); !ok || f.Cause != upstream.Lost || len(rb.seen) != 1 {
			t.Errorf("b: %+v", rb)
		}
		if rc.err != nil || len(rc.seen) != 0 {
			t.Errorf("c: %+v", rc)
		}
	})
}

func TestE48TheEndOfTheChannelFailsEveryRequest(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		_, doneA := w.begin(t.Context(), tool("a"), false)
		_, doneB := w.begin(t.Context(), call(mcp.MethodListen, ""), true)
		_ = w.out.Close()
		for _, done := range []<-chan result{doneA, doneB} {
			if f, ok := (<-done).err.(*upstream.Failure); !ok || f.Cause != upstream.Lost || !f.Sent {
				t.Errorf("error %v", f)
			}
		}
		_, err := w.do(t.Context(), requestOf(tool("c")), sink{})
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Lost || f.Sent {
			t.Errorf("error %v", err)
		}
	})
}

func TestAServerThatReadsNothingHoldsNobodyUp(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 2*maxOutgoing)
		for range 2 * maxOutgoing {
			go func() {
				_, err := w.do(ctx, requestOf(tool("a")), sink{})
				done <- err
			}()
		}
		unsent := 0
		for range 2 * maxOutgoing {
			f, ok := (<-done).(*upstream.Failure)
			if !ok || f.Cause != upstream.Timeout {
				t.Fatalf("error %v", f)
			}
			if !f.Sent {
				unsent++
			}
		}
		if unsent == 0 || len(w.waitingIDs()) != 0 {
			t.Errorf("%d unsent, %d waiting", unsent, len(w.waitingIDs()))
		}
	})
}

func TestASlowCallerHoldsNobodyUp(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		release := make(chan struct{})
		slow := make(chan error, 1)
		go func() {
			_, err := w.do(t.Context(), requestOf(withMeta("a", `"progressToken":1`)), sink{notify: func(jsonrpc.Message) { <-release }})
			slow <- err
		}()
		a := w.receive().ID
		for range 2 * maxQueued {
			w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s}}`, a)
		}
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, a)
		b, done := w.begin(t.Context(), tool("b"), false)
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, b)
		if r := <-done; r.err != nil {
			t.Fatal(r.err)
		}
		close(release)
		if err := <-slow; err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzPipeInput(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nx\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p := newPipe(64, nil, zerolog.Nop())
		w := newWaiter(&request{call: new(upstream.Call), id: "1"}, sink{listen: true}, nil)
		p.waiting["1"] = w
		p.read(strings.NewReader(string(in)))
	})
}

func TestGarbageOfAProcessDoesNotFillTheLog(t *testing.T) {
	var log strings.Builder
	p := newPipe(1<<16, nil, zerolog.New(&log))
	for range 10 * SkippedBurst {
		p.dispatch([]byte("loading …"))
	}
	if n := strings.Count(log.String(), SkippedLine); n != SkippedBurst {
		t.Errorf("%d lines in the log, want %d", n, SkippedBurst)
	}
}
