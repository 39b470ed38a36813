package channel

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// Before initialize nothing is known of a client, and it may ping: one that reads no answers
// has no more than one of them wait.
func TestPingsOfAClientThatReadsNothingWaitInItsConnection_A9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writing, proceed := 0, make(chan struct{})
		c := New(context.Background(), Options{}, nil, downstream.Caller{}, observe.Stdio, func([]byte) error {
			writing++
			<-proceed
			return nil
		})
		taken := 0
		go func() {
			for range 100 {
				c.receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
				taken++
			}
		}()
		synctest.Wait()
		if taken > 1 || writing != 1 {
			t.Errorf("%d pings taken, %d being answered", taken, writing)
		}
		close(proceed)
		synctest.Wait()
		if taken != 100 || writing != 100 {
			t.Errorf("%d pings taken, %d answered", taken, writing)
		}
		c.Close(ErrDisconnected)
	})
}

// endless is a conversation whose requests stay.
type endless struct{ downstream.Conversation }

func (endless) Orderly() bool { return false }

func (endless) Serve(ctx context.Context, _ downstream.Caller, _ downstream.Request, out downstream.Reply) {
	<-ctx.Done()
	out.Abandon()
}

// What a request keeps in memory is the text that it came in, and its id besides.
func TestRequestsAreChargedForAllThatTheyKeep(t *testing.T) {
	const large = 1 << 20
	long := strings.Repeat("x", large)
	for name, frame := range map[string]string{
		"a long id":                   `{"jsonrpc":"2.0","id":"` + long + `","method":"m"}`,
		"long params":                 `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"` + long + `"}}`,
		"a member that means nothing": `{"jsonrpc":"2.0","id":1,"method":"m","junk":"` + long + `"}`,
		"one of an array":             `[{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"` + long + `"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := budget.New(64 * large)
				account, err := memory.Open("")
				if err != nil {
					t.Fatal(err)
				}
				c := New(t.Context(), Options{Account: account, MaxBatch: 4, MaxInFlight: func() int { return 4 }},
					nil, downstream.Caller{}, observe.Stdio, func([]byte) error { return nil })
				c.conv = endless{}
				c.receive([]byte(frame))
				synctest.Wait()
				if used := memory.Used(); used < large || used > 4*large {
					t.Errorf("it is charged %d KiB", used>>10)
				}
				c.cancel()
				synctest.Wait()
				if used := memory.Used(); used != 0 {
					t.Errorf("%d bytes are left charged", used)
				}
			})
		})
	}
}

// A buffer has grown beyond what it holds, and is kept whole.
func TestRequestsAreChargedForTheirBuffer(t *testing.T) {
	const size = 1 << 20
	memory := budget.New(64 * size)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	c := New(t.Context(), Options{Account: account, MaxInFlight: func() int { return 4 }},
		nil, downstream.Caller{}, observe.WebSocket, func([]byte) error { return nil })
	c.conv = endless{}
	c.receive(append(make([]byte, 0, size), `{"jsonrpc":"2.0","id":1,"method":"m"}`...))
	if used := memory.Used(); used < size {
		t.Errorf("it is charged %d KiB of 1024", used>>10)
	}
	c.cancel()
	c.work.Wait()
}

// A small message of a large array does not keep the others.
func TestMessagesOfAnArrayStayWithoutTheOthers(t *testing.T) {
	frame := []byte(`[` + strings.Repeat(" ", messageCost) + `{"a":1}]`)
	msg := jsonrpc.Message{Params: frame[1+messageCost : len(frame)-1]}
	if held := detach(&msg, frame); held != len(`{"a":1}`) {
		t.Errorf("it keeps %d bytes", held)
	}
	clear(frame)
	if !bytes.Equal(msg.Params, []byte(`{"a":1}`)) {
		t.Error("it is part of the array's text")
	}
}

// Of a message for which there is no memory only the beginning is there.
func TestAnArrayForWhichThereIsNoMemoryIsAnsweredForEachRequestThatItShows(t *testing.T) {
	account, err := budget.New(1 << 20).Open("")
	if err != nil {
		t.Fatal(err)
	}
	hold := budget.On(account)
	short := hold.Grow(8 << 20)
	if !budget.Short(short) {
		t.Fatal(short)
	}
	var sent []string
	c := New(t.Context(), Options{Account: account, MaxBatch: 4}, nil, downstream.Caller{}, observe.WebSocket, func(msg []byte) error {
		sent = append(sent, string(msg))
		return nil
	})
	c.version = mcp.V20250326
	beginning := []byte(`[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":"2","method":"m","params":{"a":"xx`)
	why := []error{short, io.EOF}
	c.ReadFrom(func() ([]byte, error) {
		err := why[0]
		why = why[1:]
		return beginning, err
	})
	c.Close(ErrDisconnected)
	if len(sent) != 2 || !strings.HasPrefix(sent[0], `{"jsonrpc":"2.0","id":1,"error":`) || !strings.HasPrefix(sent[1], `{"jsonrpc":"2.0","id":"2","error":`) {
		t.Errorf("answered is %q", sent)
	}
}

// A listen of a modern client takes a connection to the server for as long as it lasts.
func TestListensAreChargedAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(64 << 20)
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		c := New(context.Background(), Options{Account: account, MaxInFlight: func() int { return 4 }}, nil, downstream.Caller{}, observe.WebSocket,
			func([]byte) error { return nil })
		c.conv = endless{}
		for i, method := range []string{"tools/call", "subscriptions/listen"} {
			before := memory.Used()
			c.receive([]byte(`{"jsonrpc":"2.0","id":` + strconv.Itoa(i) + `,"method":"` + method + `","params":{}}`))
			synctest.Wait()
			if got := memory.Used() - before; (got >= listenCost) != (i == 1) {
				t.Errorf("%s is charged %d bytes", method, got)
			}
		}
		c.cancel()
		synctest.Wait()
		if left := memory.Used(); left != 0 {
			t.Errorf("%d bytes stay charged", left)
		}
	})
}
