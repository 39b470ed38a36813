package channel

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/observe"
)

func idle() *Channel {
	return New(context.Background(), Options{}, nil, downstream.Caller{Principal: "p"}, observe.WebSocket, func([]byte) error { return nil })
}

func TestRegistryIsBoundedAndEndsWhatItHolds(t *testing.T) {
	r := NewRegistry(2)
	a, b := idle(), idle()
	if !r.Add("a", a) || !r.Room() || !r.Add("b", b) || r.Room() || r.Add("c", idle()) {
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
	if r.Room() || r.Add("d", idle()) {
		t.Error("it takes connections after Refuse")
	}
	over := errors.New("over")
	r.Close(over)
	<-a.Gone()
	if !errors.Is(a.Err(), over) || a.Principal() != "p" {
		t.Errorf("ended with %v", a.Err())
	}
}
