package call

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a call does is tested at the face of package bridge, which has sessions. Here is
// what cannot be seen from there.

// alone is a session with nothing but one call.
type alone struct {
	Session
	Tables
}

func (alone) Declares() ([]byte, string)            { return noCapabilities, "" }
func (alone) Repeats() *again.Replies               { return nil }
func (alone) Enter(*Call) error                     { return nil }
func (alone) Exit(*Call)                            {}
func (alone) Suspend(*Call) *Call                   { return nil }
func (alone) Await(*Call, jsonrpc.ID, string, bool) {}
func (alone) Drop(jsonrpc.ID)                       {}
func (alone) Resumed(*Call)                         {}
func clientOf(t testing.TB, server upstream.Caller) *Client {
	d := NewDriver(Options{Upstream: server, Catalog: catalog.New(nil, nil), Flows: mrtr.Limits{}.WithDefaults(), Alive: func() {}, Log: zerolog.Nop()})
	t.Cleanup(d.Await)
	return &Client{Declaration: catalog.Undeclared, Driver: d, Session: alone{}, Tables: alone{}, Rules: &translate.Rules{Version: mcp.V20251125}, Server: catalog.Unknown}
}

// silent is a server that answers nothing until it need not.
type silent struct{ upstream.Caller }

func (silent) Do(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// deaf is a client that hears of nothing.
type deaf struct{}

func (deaf) Interactive() bool                     { return true }
func (deaf) Queue(downstream.Message)              {}
func (deaf) Flush()                                {}
func (deaf) Send(downstream.Message)               {}
func (deaf) Finish(downstream.Message)             {}
func (deaf) Refuse(*downstream.Refusal) bool       { return true }
func (deaf) Abandon()                              {}
func (deaf) Address() downstream.Address           { return downstream.Address{} }
func (deaf) Reachable() bool                       { return true }
func (deaf) Attached() bool                        { return true }
func (deaf) Delivered() bool                       { return true }
func (deaf) Continue(work func())                  { go work() }
func (deaf) Outlast() func()                       { return func() {} }
func (deaf) Checkpointer() downstream.Checkpointer { return nil }

var request = downstream.NewRequest(jsonrpc.Message{ID: "7", Method: mcp.MethodToolsCall, Params: []byte(`{"name":"echo"}`)})

// What the runtime holds of a stopped timer must not hold the call, with all that a
// client sent.
func TestTimerOfAFinishedCallHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(clientOf(t, silent{}), downstream.Caller{}, request, deaf{})
		go k.Start()
		synctest.Wait()
		timer := k.timer
		k.Drive(mrtr.Cancelled())
		synctest.Wait()
		if !k.flow.Over() || timer.call.Load() != nil {
			t.Error("the timer still leads to the call")
		}
		timer.ring() // comes to nothing
	})
}

// BenchmarkProgress is the bridge's own share of a progress notification.
func BenchmarkProgress(b *testing.B) {
	k := &Call{client: clientOf(b, silent{}), out: deaf{}}
	k.flow.Progress.Token, k.token = []byte("7"), []byte(`"p-1-0"`)
	k.flow.State = mrtr.Sending
	msg := jsonrpc.Message{Method: mcp.NotificationProgress,
		Params: []byte(`{"progressToken":"p-1-0","progress":3,"total":10,"message":"step 3 of 10"}`)}
	r := &round{Call: k}
	b.ReportAllocs()
	for b.Loop() {
		k.flow.Progress.Started = false
		r.notify(msg)
	}
}

// Of many questions of one round each is translated when the round is judged and when it is asked, not
// once more for each of the others.
func TestARoundIsJudgedOnce_C33(t *testing.T) {
	const n = 64
	client, translated := clientOf(t, silent{}), 0
	client.Rules = &translate.Rules{Version: mcp.V20250618, Lost: func(string) { translated++ }}
	k := &Call{client: client, out: deaf{}}
	k.asking.Call = k
	for i := range n {
		k.flow.Inputs = append(k.flow.Inputs, mrtr.Input{InputRequest: mrtr.InputRequest{Key: strconv.Itoa(i), Method: mcp.MethodElicitationCreate, Params: []byte(
			`{"message":"a","requestedSchema":{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"b","title":"c"}]}}}}`)}})
	}
	for i := range n {
		if settled := k.asking.askLocked([]*mrtr.Input{&k.flow.Inputs[i]}); len(settled) > 0 {
			t.Fatal("it was not asked")
		}
		k.flow.Inputs[i].Response = []byte("{}")
	}
	if translated != 2*n {
		t.Errorf("%d questions were translated %d times", n, translated)
	}
}
