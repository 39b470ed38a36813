package legacy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// beginnings notes in which order requests begin. Those in stuck hold on until that is closed.
type beginnings struct {
	mu    sync.Mutex
	seen  []string
	stuck map[string]chan struct{}
}

func (b *beginnings) note(req *downstream.Request) {
	b.mu.Lock()
	b.seen = append(b.seen, string(req.ID))
	stuck := b.stuck[string(req.ID)]
	b.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
}

func (b *beginnings) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

func echo(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, id) }

// counted returns the ids 1 to n.
func counted(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(i+1))
	}
	return ids
}

func TestRequestsOfAConnectionBeginInTheirOrder(t *testing.T) {
	const n = 100
	t.Run("stdio", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, seen := newFake(), &beginnings{}
			b.begins = seen.note
			l := serveStdio(t, Options{MaxPending: 2 * n}, b)
			l.send(initialize(mcp.V20251125)) // whose answer nobody waits for
			for i := range n {
				l.send(echo(i + 1))
			}
			for range n + 1 {
				l.next()
			}
			want(t, "order", seen.all(), counted(n))
		})
	})
	t.Run("an array", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, seen := newFake(), &beginnings{}
			b.begins = seen.note
			l := serveStdio(t, Options{}, b)
			l.initialize(mcp.V20250326)
			var all []string
			for i := range 30 {
				all = append(all, echo(i+1))
			}
			l.send("[" + strings.Join(all, ",") + "]")
			l.next()
			want(t, "order", seen.all(), counted(30))
		})
	})
	t.Run("WebSocket", func(t *testing.T) {
		b, seen := newFake(), &beginnings{}
		b.begins = seen.note
		_, p := serveAll(t, Options{}, b)
		c, _, err := dial(t, p, http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		say(t, c, initialize(mcp.V20251125))
		frame(t, c)
		for i := range n {
			say(t, c, echo(i+1))
		}
		for range n {
			frame(t, c)
		}
		want(t, "order", seen.all(), counted(n))
	})
}

// stuckLine is a client over stdio whose request 1 is stuck before it has begun, until stuck is closed.
func stuckLine(t *testing.T) (b *fakeBackend, seen *beginnings, l *line, stuck chan struct{}) {
	stuck = make(chan struct{})
	b, seen = newFake(), &beginnings{stuck: map[string]chan struct{}{"1": stuck}}
	b.begins = seen.note
	l = serveStdio(t, Options{}, b)
	l.initialize(mcp.V20251125)
	return b, seen, l, stuck
}

// A request that is stuck before it has begun holds up neither what ends it nor what keeps its connection, and what
// is behind it begins when it may.
func TestARequestThatCannotBeginHoldsUpNoPingAndNoCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, seen, l, stuck := stuckLine(t)
		synctest.Wait()
		for i := range 4 {
			l.send(echo(i + 1))
		}
		synctest.Wait() // a ping waits for nobody's beginning
		l.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		want(t, "ping", l.next(), `{"jsonrpc":"2.0","id":"p","result":{}}`)
		l.send(`{"jsonrpc":"2.0","id":"asked","result":{}}`)
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		want(t, "answered", b.last().answered, []string{`"asked"`})
		want(t, "nobody has overtaken", seen.all(), []string{"1", `"p"`})
		close(stuck)
		for range 3 {
			l.next()
		}
		synctest.Wait()
		want(t, "the one that was cancelled never begins", seen.all(), []string{"1", `"p"`, "3", "4"})
	})
}

// What waits to begin when its client initializes anew is given up with the rest. All of it began then, at once and in any order.
func TestWhatWaitsToBeginNeverDoesWhenItsClientBeginsAnew_A4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, seen, l, stuck := stuckLine(t)
		for i := range 40 {
			l.send(echo(i + 1))
		}
		synctest.Wait()
		l.send(initialize(mcp.V20251125))
		l.next()
		synctest.Wait()
		want(t, "what has begun", seen.all(), []string{"1"})
		l.send(echo(2)) // its id is free, and its place is behind nobody's
		want(t, "of the next client", l.next(), `{"jsonrpc":"2.0","id":2,"result":{}}`)
		close(stuck)
		synctest.Wait()
		want(t, "what has begun", seen.all(), []string{"1", "2"})
	})
}

// Whoever passes goes on beside those behind it.
func TestARequestThatHasBegunHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		b := newFake()
		b.begins = func(req *downstream.Request) {
			if req.ID == jsonrpc.ID("1") {
				req.Link.Pass()
				<-stuck
			}
		}
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.send(echo(1))
		l.send(echo(2))
		want(t, "the second", l.next(), `{"jsonrpc":"2.0","id":2,"result":{}}`)
		close(stuck)
		want(t, "the first", l.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

// The bubble finds who still waits.
func TestAConnectionThatClosesLeavesNobodyWaitingToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, l, stuck := stuckLine(t)
		b.last().ending = func() { close(stuck) } // as a conversation's end ends what is under way
		for i := range 10 {
			l.send(echo(i + 1))
		}
		synctest.Wait()
		l.stop()
		if err := <-l.done; err == nil {
			t.Error("it ended by itself")
		}
	})
}

// relayedTo is a backend of a server whose own messages go to it as they come, one after the other.
func relayedTo(stuck map[string]chan struct{}) (*fakeBackend, *beginnings) {
	b, seen := newFake(), &beginnings{stuck: stuck}
	b.orderly, b.begins = true, seen.note
	return b, seen
}

// A process that reads slowly holds up its client, and nothing that it wrote is dropped, whatever came with the response to initialize.
func TestNothingIsLostOfWhatComesBehindInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, opened := make(chan struct{}), make(chan struct{})
		b, _ := relayedTo(map[string]chan struct{}{"1": stuck})
		b.open = func(downstream.Caller, jsonrpc.Message) error { <-opened; return nil }
		l := serveStdio(t, Options{}, b)
		l.send(initialize(mcp.V20251125))
		l.send(echo(1)) // waits behind initialize, and then for the server to read
		synctest.Wait()
		close(opened)
		l.next() // initialize is answered
		synctest.Wait()
		const many = 200
		go func() {
			for i := range many {
				l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","result":{}}`, i))
				l.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			}
		}()
		synctest.Wait()
		close(stuck)
		l.next()
		synctest.Wait()
		want(t, "answers that reached the server", len(b.last().answered), many)
		want(t, "notifications that reached the server", len(b.last().notified), many)
	})
}

// The call would be executed, and its cancellation name what the server does not know.
func TestNoCancellationOvertakesItsRelayedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		b, seen := relayedTo(map[string]chan struct{}{"1": stuck})
		modern := newFake()
		modern.begins = seen.note
		b.connected = &fakeConv{backend: modern, version: mcp.V20260728}
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
		synctest.Wait()
		l.send(echo(2))
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		if begun := seen.all(); !slices.Contains(begun, "2") {
			t.Errorf("begun: %v, cancelled: %d", begun, len(b.last().notified))
		}
		close(stuck)
		synctest.Wait()
	})
}
