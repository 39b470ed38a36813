package channel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// opensAt is a server that answers each initialize when it may.
type opensAt struct {
	downstream.Backend
	open chan struct{}
	conv downstream.Conversation
}

func (b *opensAt) Open(context.Context, downstream.Caller, jsonrpc.Message, downstream.Pusher) (downstream.Conversation, []byte, error) {
	<-b.open
	return b.conv, []byte(`{}`), nil
}

// slowEar takes one notification for each token, and requests at once.
type slowEar struct {
	downstream.Conversation
	take chan struct{}

	mu    sync.Mutex
	heard []string
}

func (*slowEar) Version() mcp.Version { return mcp.V20241105 }
func (*slowEar) Orderly() bool        { return false }
func (*slowEar) Close(error)          {}

func (s *slowEar) Notify(_ downstream.Caller, msg jsonrpc.Message) {
	<-s.take
	s.hear(msg.Method)
}

func (s *slowEar) Serve(_ context.Context, _ downstream.Caller, req downstream.Request, out downstream.Reply) {
	s.hear(req.Method)
	out.Finish(downstream.Result(req.ID, []byte(`{}`)))
}

func (s *slowEar) hear(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, method)
}

func (s *slowEar) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.heard))
}

// crowded is a connection whose backlog has room for two.
type crowded struct {
	*Channel
	t       *testing.T
	conv    *slowEar
	backend *opensAt
	paced   int

	mu      sync.Mutex
	refused []string
	posted  []string
}

func newCrowded(t *testing.T) *crowded {
	conv := &slowEar{take: make(chan struct{})}
	c := &crowded{t: t, conv: conv, backend: &opensAt{open: make(chan struct{}), conv: conv}}
	pace := func() *jsonrpc.Error { c.paced++; return nil } // called by one at a time, while the bubble rests
	c.Channel = New(context.Background(), Options{MaxPending: 2, MaxBatch: 8, Pace: pace, MaxInFlight: func() int { return 64 }}, c.backend, downstream.Caller{}, observe.HTTPSSE,
		func(msg []byte) error {
			if strings.Contains(string(msg), `"error"`) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.refused = append(c.refused, string(msg))
			}
			return nil
		})
	return c
}

// post takes a message as a POST of HTTP+SSE does, beside others.
func (c *crowded) post(text string) {
	go func() {
		if id, err := c.Take([]byte(text), ""); err != nil {
			c.t.Errorf("%s: %v", id, err)
		}
	}()
	synctest.Wait()
}

func (c *crowded) initialize() {
	c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
}

// say posts a notification or a request.
func (c *crowded) say(request bool) {
	method := fmt.Sprintf("m/%02d", len(c.posted))
	c.posted = append(c.posted, method)
	id := ""
	if request {
		id = fmt.Sprintf(`"id":%d,`, len(c.posted))
	}
	c.post(`{"jsonrpc":"2.0",` + id + `"method":"` + method + `"}`)
}

// wantAll has the server take what it is told, and wants it to have heard everything.
func (c *crowded) wantAll() {
	c.t.Helper()
	for range c.posted {
		select {
		case c.conv.take <- struct{}{}:
		default:
		}
		synctest.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if heard := c.conv.all(); !slices.Equal(heard, c.posted) || len(c.refused) > 0 {
		c.t.Errorf("of %d messages %d were heard: %q; refused are %q", len(c.posted), len(heard), heard, c.refused)
	}
}

// POSTs of an HTTP+SSE client come side by side. Those that waited for room behind initialize all went on with the first place that there was:
// notifications were dropped but for one, each with a 202, and requests refused.
func TestNothingIsDroppedThatWaitsForRoomBesideOthers(t *testing.T) {
	for range 300 { // it is a matter of who gets a lock first
		if t.Failed() {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCrowded(t)
			defer c.Close(ErrDisconnected)
			c.initialize()
			c.say(false)
			close(c.backend.open) // the first is being taken, and its server is slow
			synctest.Wait()
			for i := range 22 { // two find room, twenty wait for it
				c.say(i%8 == 7)
			}
			c.wantAll()
		})
	}
}

// What waited for room as its client began anew was dropped.
func TestNothingIsDroppedThatWaitsForRoomAsItsClientBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowded(t)
		defer c.Close(ErrDisconnected)
		c.initialize()
		c.say(false)
		c.backend.open <- struct{}{}
		synctest.Wait()
		c.initialize() // it waits until the first has been taken
		for i := range 10 {
			c.say(i%2 == 1)
		}
		c.conv.take <- struct{}{}
		synctest.Wait()
		close(c.backend.open)
		synctest.Wait()
		c.wantAll()
	})
}

// A connection that ends lets go of whoever waits for room.
func TestWhoWaitsForRoomLeavesWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowded(t)
		c.initialize()
		c.say(false)
		close(c.backend.open)
		synctest.Wait()
		for i := range 10 {
			c.say(i%2 == 1)
		}
		c.HangUp(nil)
		synctest.Wait()
		close(c.conv.take)
		c.Close(ErrDisconnected)
	})
}

// A request that waited behind initialize counted twice against its client's rate.
func TestARequestThatWaitsCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowded(t)
		defer c.Close(ErrDisconnected)
		c.initialize()
		c.say(true)
		close(c.backend.open)
		synctest.Wait()
		c.wantAll()
		if want := 2; c.paced != want {
			t.Errorf("%d requests were counted, want %d", c.paced, want)
		}
	})
}
