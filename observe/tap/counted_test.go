package tap

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/report"
)

// losing is a backend whose sessions lose something with each that is opened or restored.
type losing struct{ downstream.Backend }

func (losing) Open(ctx context.Context, _ downstream.Caller, _ jsonrpc.Message, _ downstream.Pusher) (downstream.Conversation, []byte, error) {
	return lossy{&peer{}, downstream.LosingTo(ctx)}, nil, nil
}

func (losing) Restore(ctx context.Context, _, _ downstream.Caller, _ []byte, _ downstream.Pusher) (downstream.Conversation, error) {
	return lossy{&peer{}, downstream.LosingTo(ctx)}, nil
}

type lossy struct {
	*peer
	to func(string)
}

func (l lossy) Look() observe.Conversation {
	return observe.Conversation{Version: mcp.V20250618, ClientInfo: []byte(`{"name":"old","version":"1"}`)}
}

func (l lossy) Notify(downstream.Caller, jsonrpc.Message) { l.to("audio") }

// TestWhatAClientLosesIsItsOwn: and a session that is restored goes on to count.
func TestWhatAClientLosesIsItsOwn(t *testing.T) {
	hub := NewHub(record.NewRedactor(false))
	defer hub.Close()
	file := filepath.Join(t.TempDir(), "clients.json")
	book, err := report.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	hub.Count(book)
	backend := hub.Mount("/mcp", observe.Server{}).Backend(losing{}, nobody{})
	open := func(name string) downstream.Conversation {
		conv, _, _ := backend.Open(context.Background(), downstream.Caller{}, jsonrpc.Message{Method: mcp.MethodInitialize,
			Params: []byte(`{"clientInfo":{"name":"` + name + `","version":"1"}}`)}, nil)
		return conv
	}
	open("whole")
	open("old").Notify(downstream.Caller{}, jsonrpc.Message{})
	restored, _ := backend.Restore(context.Background(), downstream.Caller{}, downstream.Caller{}, nil, nil)
	restored.Notify(downstream.Caller{}, jsonrpc.Message{})
	if err := book.Save(); err != nil {
		t.Fatal(err)
	}
	was, _ := report.Read(file)
	for i := range was.Clients {
		c := &was.Clients[i]
		if loses := strings.Contains(c.Verdict(), "projections (audio 2)"); loses != (c.Name == "old") || c.Sessions != 1 {
			t.Errorf("%s, %d sessions: %s", c.Name, c.Sessions, c.Verdict())
		}
	}
	if len(was.Clients) != 2 {
		t.Errorf("%d clients", len(was.Clients))
	}
}
