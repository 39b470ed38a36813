package channel

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/observe"
)

func idle() *Channel {
	return New(context.Background(), Options{}, nil, downstream.Caller{Principal: "p"}, observe.WebSocket, func([]byte) error { return nil })
}

func TestRegistryIsBoundedAndEndsWhatItHolds(t *testing.T) {
	r := NewRegistry(2)
	a, b := idle(), idle()
	if !r.Add("a", a) || !r.Room(nil) || !r.Add("b", b) || r.Room(nil) || r.Add("c", idle()) {
		t.Error("it does not hold two")
	}
	r.Remove("b")
	if r.Get("b") != nil || r.Get("a") != a || r.Len() != 1 {
		t.Errorf("%d are left", r.Len())
	}
	if seen := r.Look(); len(seen) != 0 {
		t.Errorf("%d sessions before any initialize", len(seen))
	}
	r.Refuse()
	if r.Room(nil) || r.Add("d", idle()) {
		t.Error("it takes connections after Refuse")
	}
	over := errors.New("over")
	r.Close(over)
	<-a.Gone()
	if !errors.Is(a.Err(), over) || a.Principal() != "p" {
		t.Errorf("ended with %v", a.Err())
	}
}

// One tenant does not get all connections that there may be.
func TestTheLastConnectionsAreForOthers(t *testing.T) {
	r, memory := NewRegistry(16), budget.New(1<<20)
	of := func(tenant string) *Channel {
		account, err := memory.Open(tenant)
		if err != nil {
			t.Fatal(err)
		}
		return New(context.Background(), Options{Account: account}, nil, downstream.Caller{}, observe.WebSocket, func([]byte) error { return nil })
	}
	greedy := 0
	for r.Add(fmt.Sprint("greedy ", greedy), of("greedy")) {
		greedy++
	}
	if c := of("modest"); greedy != 14 || !r.Room(c.Account()) || !r.Add("modest", c) {
		t.Errorf("one has %d connections, another none", greedy)
	}
	r.Close(errors.New("over"))
}
