package main

import (
	"fmt"
	"testing"

	"github.com/mcpbridge/bridge/observe"
)

func TestEverySessionHasItsStreams(t *testing.T) {
	streams := []observe.Stream{{Attached: true}, {ID: 1}, {ID: 2, Ended: true}}
	for transport, want := range map[observe.Transport]string{
		observe.StreamableHTTP: "[{get attached} {call detached} {call ended}]",
		observe.HTTPSSE:        "[{sse attached}]",
		observe.WebSocket:      "[{websocket attached}]",
		observe.Stdio:          "[]",
	} {
		s := observe.Sight{Transport: transport}
		if transport == observe.StreamableHTTP {
			s.Streams = streams
		}
		if got := fmt.Sprint(streamsOf(&s)); got != want {
			t.Errorf("%s: %s, want %s", transport, got, want)
		}
	}
}
