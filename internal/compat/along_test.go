package compat

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
