package compat

import (
	"slices"
	"strings"
	"time"
)

var alongTheWay = group{"Messages along the way", []feature{
	{name: "Progress, under the client's own token", rules: "B-5, C-1, C-2, C-3, P-8", kinds: "YYYY", run: progress},
	{name: "`message` of progress", rules: "C-5", kinds: "NYYY", run: progressMessage},
	{name: "Progress across rounds", rules: "C-4", kinds: "TTTT", run: progressAcrossRounds},
	{name: "Log messages (`logging/setLevel`)", rules: "B-6, C-6, C-7, J-2", kinds: "TTTT", run: logs},
	{name: "Other notifications of a call", rules: "C-9", kinds: "YYYY", run: otherNotifications},
	{name: "The client cancels a running call", rules: "D-T13, E-37, B-11, J-13", kinds: "TTTT", run: cancelRunning},
	{name: "The client cancels while it is asked", rules: "D-T13, C-35, D-I15", kinds: "TTTT", run: cancelAsked},
	{name: "The session ends while a call runs", rules: "D-T19, A-30", kinds: "TTTT", run: deleteRunning},
	{name: "List changes", rules: "C-12, C-13, C-17, C-21, C-22, C.3", kinds: "TTTT", run: listChanges},
	{name: "Resource updates (`resources/subscribe`)", rules: "C-14, C-15, C-16, C-17, C-22, C-24", kinds: "TTTT", run: resourceUpdates},
	{name: "Changes while the server's stream is broken", rules: "C-19, C-20, C-21", kinds: "TTTT", run: gap},
	{name: "`notifications/roots/list_changed`", rules: "J-1, P-5, B-11", kinds: "TTTT", run: rootsChanged},
}}

func progress(w *world) cell {
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":"unknown","progress":9}`) // C-2
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":0.5,"total":2}`)
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":0.5,"total":2}`) // does not rise
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":2,"total":2}`)
		x.result(`{"resultType":"complete","content":[]}`)
	}, func(x *incoming) {
		if x.token() != "" {
			w.Errorf("B-5: a token was made up: %s", x.token())
		}
		x.notify("notifications/progress", `{"progressToken":0,"progress":9}`)
		x.result(`{"resultType":"complete","content":[]}`)
	})
	x := w.client.call("tools/call", `{"name":"t","_meta":{"progressToken":0}}`)
	got := x.notified("notifications/progress")
	if len(got) != 2 {
		w.Fatalf("C-1, C-2: %d notifications", len(got))
	}
	expect(w.T, "C-1", string(got[0].Params), `{"progressToken":0,"progress":0.5,"total":2}`)
	expect(w.T, "C-1", string(got[1].Params), `{"progressToken":0,"progress":2,"total":2}`)
	if up := w.server.last("tools/call").token(); up == "0" || up == "" {
		w.Errorf("B-5: the token went up as %s", up)
	}
	if y := w.client.call("tools/call", `{"name":"t"}`); len(y.before) != 0 {
		w.Errorf("C-3: progress for who asked for none: %s", y.before[0].Text)
	}
	return asItIs()
}

func progressMessage(w *world) cell {
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1,"message":"m"}`)
		x.result(`{"resultType":"complete","content":[]}`)
	})
	x := w.client.call("tools/call", `{"name":"t","_meta":{"progressToken":"p"}}`)
	return w.which("progress", string(x.notified("notifications/progress")[0].Params),
		kept(`{"progressToken":"p","progress":1,"message":"m"}`), left(`{"progressToken":"p","progress":1}`))
}

func progressAcrossRounds(w *world) cell {
	ask := rootsFirst(`{"content":[]}`)
	tokens := map[string]bool{}
	w.server.on("tools/call", func(x *incoming) {
		tokens[x.token()] = true
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":2,"total":3}`)
		ask(x)
	})
	w.client.answers["roots/list"] = func(string) string { return `{"roots":[]}` }
	x := w.client.call("tools/call", `{"name":"t","_meta":{"progressToken":7}}`)
	got := x.notified("notifications/progress")
	if len(got) != 2 || len(tokens) != 2 {
		w.Fatalf("C-4, B-5: %d notifications, %d tokens", len(got), len(tokens))
	}
	expect(w.T, "C-4", string(got[0].Params), `{"progressToken":7,"progress":2,"total":3}`)
	expect(w.T, "C-4", string(got[1].Params), `{"progressToken":7,"progress":4,"total":5}`)
	return via("each round counts on from the one before")
}

// logs: the level of the session travels with each request; what comes below
// the present level, or without having been asked for, is dropped.
func logs(w *world) cell {
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/message", `{"level":"info","data":"i"}`)
		x.notify("notifications/message", `{"level":"error","logger":"l","data":{"e":1}}`)
		x.result(`{"resultType":"complete","content":[]}`)
	})
	if x := w.client.call("tools/call", `{"name":"t"}`); len(x.before) != 0 || w.server.last("tools/call").meta("logLevel") != "" {
		w.Errorf("C-7, Q13: logs that nobody asked for: %v", x.before)
	}
	expect(w.T, "setLevel", string(w.client.call("logging/setLevel", `{"level":"warning"}`).response.Result), `{}`)
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(w.T, "B-6", w.server.last("tools/call").meta("logLevel"), `"warning"`)
	if got := x.notified("notifications/message"); len(got) != 1 {
		w.Errorf("C-6: %d log messages", len(got))
	} else {
		expect(w.T, "C-6", string(got[0].Params), `{"level":"error","logger":"l","data":{"e":1}}`)
	}
	if e := w.client.call("logging/setLevel", `{"level":"loud"}`).response.Error; e == nil || e.Code != -32602 {
		w.Errorf("B.4: an unknown level: %+v", e)
	}
	return via("the level goes along with every request")
}

func otherNotifications(w *world) cell {
	w.server.on("tools/call", func(x *incoming) {
		x.event(`{"jsonrpc":"2.0","id":99,"method":"sampling/createMessage","params":{}}`) // C-10: never answered, never passed on
		x.event(`{"jsonrpc":"2.0","id":"someone else's","result":{"content":[{"type":"text","text":"not mine"}]}}`)
		x.notify("notifications/x", `{"a":1,"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}`)
		x.result(`{"resultType":"complete","content":[]}`)
		x.notify("notifications/x", `{"too":"late"}`) // C-11
	})
	x := w.client.call("tools/call", `{"name":"t"}`)
	expect(w.T, "E-38", string(x.response.Result), `{"content":[]}`)
	if len(x.before) != 1 || len(w.client.asked) != 0 {
		w.Fatalf("C-9, C-10: %d notifications, %d questions", len(x.before), len(w.client.asked))
	}
	return w.which("notification", string(x.before[0].Params), kept(`{"a":1}`))
}

func cancelRunning(w *world) cell {
	gone, more := make(chan struct{}, 1), make(chan string, 1)
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1}`)
		receive(w, x, more)
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":2}`)
		x.gone()
		gone <- struct{}{}
	})
	x := w.client.start("tools/call", `{"name":"t","_meta":{"progressToken":1}}`)
	x.until("notifications/progress")
	for _, other := range []string{`999`, `"` + x.id + `"`, `null`} { // no call has this id (P-8)
		w.client.notify(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + other + `}}`)
	}
	more <- "now"
	x.until("notifications/progress")
	w.client.notify(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + x.id + `}}`)
	if x.finish(); x.response != nil {
		w.Errorf("E.9: a cancelled call was answered: %s", x.response.Text)
	}
	w.await(gone, "E-37: the end of the request at the server")
	return via("the response stream to the server is closed")
}

func cancelAsked(w *world) cell {
	w.server.on("tools/call", rootsFirst(`{"content":[]}`))
	x := w.client.start("tools/call", `{"name":"t"}`)
	question := x.until("roots/list")
	w.client.notify(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + x.id + `}}`)
	x.finish()
	withdrawn := x.notified("notifications/cancelled")
	if x.response != nil || len(withdrawn) != 1 {
		w.Fatalf("D-T13: response %+v, %d withdrawals", x.response, len(withdrawn))
	}
	expect(w.T, "C-35", member(withdrawn[0].Params, "requestId"), question.ID)
	w.client.answer(question, `{"roots":[]}`) // too late: accepted and ignored (C.9, D-T21)
	w.client.call("ping", "")
	if n := len(w.server.requests("tools/call")); n != 1 {
		w.Errorf("D-T13: the server got %d requests", n)
	}
	return via("the question is withdrawn; nothing more goes up")
}

func deleteRunning(w *world) cell {
	gone := make(chan struct{}, 1)
	w.server.on("tools/call", func(x *incoming) {
		x.notify("notifications/progress", `{"progressToken":`+x.token()+`,"progress":1}`)
		x.gone()
		gone <- struct{}{}
	})
	x := w.client.start("tools/call", `{"name":"t","_meta":{"progressToken":1}}`)
	x.until("notifications/progress")
	w.client.send("DELETE", "", nil)
	if x.finish(); x.response != nil {
		w.Errorf("D-T19: %s", x.response.Text)
	}
	w.await(gone, "D-T19: the end of the request at the server")
	return via("the response stream to the server is closed")
}

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
