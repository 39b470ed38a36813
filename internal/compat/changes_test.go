package compat

import (
	"slices"
	"strings"
	"time"
)

func listChanges(w *world) cell {
	w.server.on("tools/list", result(`{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[]}`))
	changed := make(chan string, 1)
	w.server.wait("subscriptions/listen", 1)
	w.server.on("subscriptions/listen", func(x *incoming) {
		x.acknowledge()
		receive(w, x, changed)
		x.announce("notifications/tools/list_changed", "")
		x.announce("notifications/prompts/list_changed", `"x":1`)
		x.gone()
	})
	c := w.newClient() // another principal: its listen is the one above
	c.header = map[string][]string{"Authorization": {"Bearer b"}}
	c.initialize(`{}`)
	c.call("tools/list", "")
	stream := c.listen()
	expect(w.T, "C-13", member(last(w.server.wait("subscriptions/listen", 2)).Params, "notifications"),
		`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`)
	before := len(w.server.requests("tools/list"))
	changed <- "now"
	first, second := stream.next(), stream.next()
	if first.Method != "notifications/tools/list_changed" || first.Params != nil {
		w.Errorf("C-22: %s", first.Text)
	}
	expect(w.T, "C-22", second.Text, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"x":1}}`)
	c.call("tools/list", "")
	if n := len(w.server.requests("tools/list")); n != before+1 {
		w.Errorf("B-44, C-21: the list was not asked for again")
	}
	return via("by a subscription of the bridge, on the GET stream")
}

func last(all []*incoming) *incoming { return all[len(all)-1] }

func resourceUpdates(w *world) cell {
	acks, updates := make(chan string, 1), make(chan string, 1)
	w.server.on("subscriptions/listen", func(x *incoming) {
		if member(x.Params, "notifications", "resourceSubscriptions") == "" {
			listenForever(x) // that of list changes
			return
		}
		receive(w, x, acks)
		x.acknowledge()
		for uri := receive(w, x, updates); uri != ""; uri = receive(w, x, updates) {
			x.announce("notifications/resources/updated", `"uri":"`+uri+`"`)
		}
	})
	c := w.newClient()
	c.initialize(declared(w.version))
	stream := c.listen()
	go func() {
		w.subscriptions(1)
		acks <- "now" // an answer before this would be too early (C-15)
	}()
	expect(w.T, "subscribe", string(c.call("resources/subscribe", `{"uri":"u:1"}`).response.Result), `{}`)
	old := last(w.subscriptions(1))
	expect(w.T, "C-14", member(old.Params, "notifications"), `{"resourceSubscriptions":["u:1"]}`)
	updates <- "u:1/part"
	expect(w.T, "C-22", stream.next().Text, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:1/part"}}`)

	acks <- "now"
	c.call("resources/subscribe", `{"uri":"u:2"}`)
	current := last(w.subscriptions(2))
	expect(w.T, "C-14", member(current.Params, "notifications"), `{"resourceSubscriptions":["u:1","u:2"]}`)
	old.gone() // it is closed once the new one was acknowledged

	expect(w.T, "unsubscribe", string(c.call("resources/unsubscribe", `{"uri":"u:3"}`).response.Result), `{}`)
	c.send("DELETE", "", nil)
	current.gone() // C-24
	return via("by a subscription of the bridge, on the GET stream")
}

// subscriptions waits for n listens for resources.
func (w *world) subscriptions(n int) (found []*incoming) {
	w.Helper()
	for all := n; ; all++ {
		found = slices.DeleteFunc(w.server.wait("subscriptions/listen", all), func(x *incoming) bool {
			return member(x.Params, "notifications", "resourceSubscriptions") == ""
		})
		if len(found) >= n {
			return found
		}
	}
}

// await waits for a word from the server.
func (w *world) await(from <-chan struct{}, what string) {
	w.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		w.Fatalf("waited in vain for %s", what)
	}
}

// receive waits for a word from the test; "" when the request is over.
func receive(w *world, x *incoming, from <-chan string) string {
	select {
	case word := <-from:
		return word
	case <-x.ctx.Done():
	case <-time.After(patience):
		w.Errorf("%s was left waiting", x.Method)
	}
	return ""
}

// gap: nobody knows what changed while the server's stream was away, so that
// everything may have.
func gap(w *world) cell {
	w.server.wait("subscriptions/listen", 1)
	c := w.newClient()
	c.header = map[string][]string{"Authorization": {"Bearer b"}}
	cut := make(chan string, 1)
	w.server.on("subscriptions/listen", func(x *incoming) {
		x.acknowledge()
		receive(w, x, cut) // and the stream just ends
	}, listenForever)
	c.initialize(`{}`)
	stream := c.listen()
	w.server.wait("subscriptions/listen", 2)
	cut <- "now"
	var got []string
	for range 3 {
		got = append(got, stream.next().Method)
	}
	for _, list := range []string{"tools", "prompts", "resources"} {
		if !strings.Contains(strings.Join(got, " "), "notifications/"+list+"/list_changed") {
			w.Errorf("C-20: %s is not announced: %v", list, got)
		}
	}
	return via("announced when the stream is back")
}

func rootsChanged(w *world) cell {
	before := len(w.server.wait("subscriptions/listen", 1))
	w.client.notify(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	w.client.notify(`{"jsonrpc":"2.0","method":"notifications/x","params":{}}`)
	w.client.call("ping", "")
	if before != len(w.server.requests("subscriptions/listen")) || len(w.server.requests("notifications/roots/list_changed")) != 0 {
		w.Error("J-1: something went up")
	}
	return via("swallowed; servers ask for roots when they need them")
}
