package bridge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// A session whose credentials have had their time hears nothing more, and what listened for it alone ends; another
// session of the same person goes on.
func TestASessionStopsListening_E34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, open := listening(t)
		conv, box := open()
		other, others := open()
		for _, c := range []*conversation{conv, other} {
			c.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationInitialized})
		}
		lists := <-up.opened
		lists.acknowledge()
		c := &client{t: t, conv: conv}
		go conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodResourcesSubscribe, Params: []byte(`{"uri":"file:///a"}`)}), c)
		resource := <-up.opened
		resource.acknowledge()
		c.result()
		for range 2 { // it may come again
			conv.StopListening()
		}
		<-resource.closed
		lists.say(mcp.NotificationToolsListChanged, `{}`)
		synctest.Wait()
		if got := box.take(); got != "" {
			t.Errorf("it heard %s", got)
		}
		if others.take() == "" {
			t.Error("another session heard nothing")
		}
		other.StopListening()
		time.Sleep(time.Minute)
		<-lists.closed
	})
}
