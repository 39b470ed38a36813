package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// callWithout makes a call without a session, with credentials, and returns what it gets.
func (p *process) callWithout(tool string) string {
	p.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://"+p.address+"/mcp", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer ada")
	req.Header.Set(mcp.HeaderProtocolVersion, "2025-06-18")
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// What a person has yet to answer, or has answered, for a caller without a session outlives a reload: the same call
// goes on under the settings that it began with. When timeouts.handover is over it ends, and its page says so.
func TestCallsWithoutASessionOutliveAReload(t *testing.T) {
	url, _, _ := unhurried(t)
	settings := func(more, auth string) string {
		return "listen: 127.0.0.1:0\nquestions: {policy: page, wait: 0s, open: 'off'}\n" + more +
			"upstreams:\n  - {path: /mcp, upstream: '" + url + "'" + auth + "}\n  - {path: /idle, upstream: '" + url + "'}\n"
	}
	r := startWithFile(t, settings("", ""))
	link := pageLink.FindString(r.callWithout("ask"))
	if link == "" {
		t.Fatal("nobody is asked")
	}
	r.reload(settings("timeouts: {flow: 31m}\n", ""), "was reloaded")
	r.expect("the last session under the old settings has ended") // of the idle mount: the other one is looked at as often
	answerOn(t, link, "f0=Ada&action=accept")
	if text := r.callWithout("ask"); !strings.Contains(text, `"done"`) {
		t.Errorf("the same call gets %s", text)
	}

	link = pageLink.FindString(r.callWithout("ask"))
	r.reload(settings("timeouts: {flow: 31m}\n", ", authorization: drop"), "was reloaded")
	other := pageLink.FindString(r.callWithout("ask"))
	if other == "" || other == link {
		t.Errorf("under settings by which callers are others the call gets %s", other)
	}
	r.reload(settings("timeouts: {flow: 32m, handover: 0s}\n", ", authorization: drop"), "timeouts.handover is over")
	r.expect(`"calls":1`)
	shown := func(link string) int {
		resp, err := client.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for until := time.Now().Add(patience); shown(other) != http.StatusGone; {
		if time.Now().After(until) {
			t.Fatal("the question of a call that has ended is open")
		}
	}
	if status := shown(link); status != http.StatusOK { // it has its hour
		t.Errorf("the question of the mount before that gets %d", status)
	}
}
