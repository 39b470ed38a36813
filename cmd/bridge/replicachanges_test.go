package main

import (
	"context"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/redistest"
)

// TestReplicasTellAClientOfChangesWhereverItListens: an SDK's client behind a balancer without affinity, whose
// requests and whose standalone stream reach different replicas, hears of each change once.
func TestReplicasTellAClientOfChangesWhereverItListens(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := peers.NewServer(t, peers.ServerOptions{})
	f := &trio{t: t, redis: redistest.Start(t)}
	keys := keyFile(t)
	for i := range f.on {
		f.on[i] = launch(t, "--upstream", server.URL, "--store.url", "redis://"+f.redis.Addr(), "--store.keys", keys, "--replica.listen", "127.0.0.1:0")
	}
	c, err := peers.Dial(ctx, f.behind().url, peers.ClientOptions{Standalone: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server.Wait(t, ctx, "a replica to listen", func() bool { return server.Requests("subscriptions/listen") > 0 })
	const heard = "notifications/tools/list_changed"
	before := len(c.Notifications(heard)) // whoever comes to another replica may have missed something
	for n := 1; n <= 3; n++ {
		server.ChangeTools()
		c.WaitFor(t, ctx, heard, before+n)
	}
	if _, err := c.ListTools(ctx, nil); err != nil {
		t.Error(err)
	}
}
