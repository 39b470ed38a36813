package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/mcp"
)

// reloadable is a run of the program with a configuration file.
type reloadable struct {
	*process
	file string
}

func startWithFile(t *testing.T, text string) *reloadable {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &reloadable{start(t, "serve", "--config", file), file}
}

// reload gives the program another file, and waits until it says outcome about that.
func (r *reloadable) reload(text, outcome string) (log string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return r.hangUp(outcome)
}

func (r *reloadable) hangUp(outcome string) (log string) {
	r.t.Helper()
	said := len(r.errors.String())
	if err := testprocess.Send(os.Getpid(), syscall.SIGHUP); err != nil {
		r.t.Fatal(err)
	}
	deadline := time.After(patience)
	for !strings.Contains(r.errors.String()[said:], outcome) {
		select {
		case <-r.errors.grown:
		case <-deadline:
			r.t.Fatalf("the program does not say %q but\n%s", outcome, r.errors.String()[said:])
		}
	}
	return r.errors.String()[said:]
}

// One that came before the start was over is obeyed after it, and ends nothing.
func TestAHangUpBeforeTheStartIsKept(t *testing.T) {
	caught := catchHangUp([]string{"serve", "--config", "x"})
	defer signal.Stop(caught)
	if err := testprocess.Send(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	early := <-caught
	caught <- early
	if obeyed := obeysHangUp(caught, true); len(obeyed) != 1 {
		t.Error("it is lost")
	}
	if catchHangUp([]string{"stdio", "serve"}) != nil || catchHangUp(nil) != nil {
		t.Error("a command that does not obey it catches it")
	}
}

// named is a modern server with one tool of this name.
func named(t *testing.T, tool string) string {
	t.Helper()
	return answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered,
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"` + tool + `","inputSchema":{"type":"object"}}]}}`}).URL
}

func (p *process) request(method, path, session, body string) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set(mcp.HeaderSessionID, session)
	}
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// session opens a session at a path.
func (p *process) session(path string) string {
	p.t.Helper()
	resp := p.request(http.MethodPost, path, "", initialize)
	text, _ := io.ReadAll(resp.Body)
	id := resp.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		p.t.Fatalf("%s gives no session: %s %s", path, resp.Status, text)
	}
	return id
}

// serves expects a session to be served by the server with this tool; without
// a session it asks as a newcomer.
func (p *process) serves(what, path, session, tool string) {
	p.t.Helper()
	resp := p.request(http.MethodPost, path, session, listTools)
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `"`+tool+`"`) {
		p.t.Errorf("%s: %s answers %s %s, want the tools of %s", what, path, resp.Status, text, tool)
	}
}

func (p *process) answers(what, method, path, session string, status int) {
	p.t.Helper()
	body := ""
	if method == http.MethodPost {
		body = listTools
	}
	if resp := p.request(method, path, session, body); resp.StatusCode != status {
		p.t.Errorf("%s: %s %s answers %s, want %d", what, method, path, resp.Status, status)
	}
}

func TestReloadLeavesUnchangedMountsAloneAndHandsTheOthersOver(t *testing.T) {
	upstream, called, release := slow(t)
	one, two, three := named(t, "one"), named(t, "two"), named(t, "three")
	entry := "  - {path: %s, upstream: '%s'%s}\n"
	head := "listen: 127.0.0.1:0\nupstreams:\n" + fmt.Sprintf(entry, "/same", upstream.URL, "")
	r := startWithFile(t, head+fmt.Sprintf(entry, "/changed", one, "")+fmt.Sprintf(entry, "/gone", two, ""))

	same, changed, gone := r.session("/same"), r.session("/changed"), r.session("/gone")
	stream := r.request(http.MethodGet, "/same", same, "")
	oldStream := r.request(http.MethodGet, "/changed", changed, "")
	call := make(chan string, 1)
	go func() {
		resp := r.request(http.MethodPost, "/same", same, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`)
		text, _ := io.ReadAll(resp.Body)
		call <- string(text)
	}()
	<-called

	log := r.reload(head+fmt.Sprintf(entry, "/changed", three, ", headers: {X-Team: '7'}")+fmt.Sprintf(entry, "/new", two, ""), "was reloaded")
	for _, part := range []string{`"kept":["/same"]`, `"changed":["/changed"]`, `"added":["/new"]`, `"removed":["/gone"]`} {
		if !strings.Contains(log, part) {
			t.Errorf("%s is not in the log:\n%s", part, log)
		}
	}
	close(release)
	if text := <-call; !strings.Contains(text, "done") {
		t.Errorf("the call that was under way got %s", text)
	}
	r.serves("a session that began before", "/changed", changed, "one")
	r.serves("a newcomer", "/changed", "", "three")
	r.serves("a session that began afterwards", "/changed", r.session("/changed"), "three")
	r.serves("a session of a mount that is gone", "/gone", gone, "two")
	r.answers("a newcomer to a mount that is gone", http.MethodPost, "/gone", "", http.StatusNotFound)
	r.serves("a newcomer to a new mount", "/new", "", "two")

	r.answers("the end of a session", http.MethodDelete, "/changed", changed, http.StatusNoContent)
	r.answers("the end of the last session", http.MethodDelete, "/gone", gone, http.StatusNoContent)
	r.expect("the last session under the old settings has ended")
	if _, err := io.ReadAll(oldStream.Body); err != nil {
		t.Errorf("the stream of the session that ended ends with %v", err)
	}
	r.answers("a session that ended", http.MethodPost, "/changed", changed, http.StatusNotFound)
	// Only now the stream of the mount that did not change may end.
	r.answers("the last session", http.MethodDelete, "/same", same, http.StatusNoContent)
	if text, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream of the unchanged mount ended with %q, %v", text, err)
	}
}

func TestSessionsOfHTTPSSEGoOnAtThePathThatTheyWereTold(t *testing.T) {
	one := named(t, "one")
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: '"+one+"'\n")
	events := r.request(http.MethodGet, "/sse", "", "")
	lines := bufio.NewScanner(events.Body)
	next := func(prefix string) string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return text
			}
		}
		t.Fatalf("no %q on the stream: %v", prefix, lines.Err())
		return ""
	}
	messages := next("data: ")
	if !strings.HasPrefix(messages, "/messages?") {
		t.Fatalf("told to post to %s", messages)
	}
	r.reload("listen: 127.0.0.1:0\nupstreams:\n- {path: /mcp, upstream: '"+one+"'}\n- {path: /b, upstream: '"+named(t, "two")+"'}\n", `"kept":["/mcp"]`)
	r.answers("a newcomer, for whom /sse is ambiguous now", http.MethodGet, "/sse", "", http.StatusNotFound)
	if resp := r.request(http.MethodPost, messages, "", initialize); resp.StatusCode != http.StatusAccepted {
		t.Errorf("the session that began at /sse is answered %s", resp.Status)
	}
	if answer := next("data: "); !strings.Contains(answer, `"protocolVersion"`) {
		t.Errorf("got %s", answer)
	}
}

func TestWrongConfigurationChangesNothing(t *testing.T) {
	one := named(t, "one")
	good := "listen: 127.0.0.1:0\nupstream: '" + one + "'\n"
	r := startWithFile(t, good)
	session := r.session("/mcp")
	for name, text := range map[string]string{
		"no YAML":           "a: b\n  c",
		"unknown key":       good + "profil: strict\n",
		"missing authority": good + "upstream-tls: {ca: /no/ca.pem}\n",
	} {
		log := r.reload(text+"log: {level: error}\n", "nothing has changed")
		if !strings.Contains(log, `"level":"error"`) {
			t.Errorf("%s: no error in\n%s", name, log)
		}
		r.serves(name, "/mcp", session, "one")
	}
	if log := r.reload(good, "was reloaded"); !strings.Contains(log, `"kept":["/mcp"]`) {
		t.Errorf("the right file afterwards: %s", log)
	}
}

func TestWhatOnlyARestartCanChangeIsSaid(t *testing.T) {
	one := named(t, "one")
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: '"+one+"'\n")
	session := r.session("/mcp")
	log := r.reload("listen: 127.0.0.1:1\nhttp: standard\npark: off\nheap-floor: off\nhuge-pages: off\nadmin: {listen: 127.0.0.1:2}\nmetrics: {tools: on}\nrecord: nowhere\nlog: {format: console}\ntls: {cert: c.pem, key: k.pem}\nupstream: '"+one+"'\n", "was reloaded")
	keys := []string{"listen", "heap-floor", "huge-pages", "admin", "metrics", "record", "log.format", "tls.cert"}
	if len(testmode.Environ()) == 0 { // which the file does not change
		keys = append(keys, "http", "park")
	}
	for _, key := range keys {
		if !strings.Contains(log, `"setting":"`+key+`"`) {
			t.Errorf("%s is not named in\n%s", key, log)
		}
	}
	r.serves("the session", "/mcp", session, "one")
}

func TestReloadChangesTheLevelOfTheLogAndTheTrustedProxies(t *testing.T) {
	one := named(t, "one")
	t.Cleanup(func() { setLevel("info") })
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: '"+one+"'\n")
	session := r.session("/mcp")
	r.reload("listen: 127.0.0.1:0\ntrusted-proxies: [127.0.0.1]\nlog: {level: debug}\nupstream: '"+one+"'\n", `"kept":["/mcp"]`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "192.0.2.7")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.expect(`"remote":"192.0.2.7:0"`)
	r.reload("listen: 127.0.0.1:0\ntrusted-proxies: [0.0.0.0/0]\nlog: {level: debug}\nupstream: '"+one+"'\n", "0.0.0.0/0 holds everybody")
	r.serves("the session", "/mcp", session, "one")
}

func TestSessionsUnderOldSettingsEndWhenTheirTimeIsOver(t *testing.T) {
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: '"+named(t, "one")+"'\n")
	session := r.session("/mcp")
	r.reload("listen: 127.0.0.1:0\ntimeouts: {handover: 0s}\nupstream: '"+named(t, "two")+"'\n", "timeouts.handover is over")
	r.expect("was reloaded")
	for resp := r.request(http.MethodPost, "/mcp", session, listTools); resp.StatusCode != http.StatusNotFound; {
		resp = r.request(http.MethodPost, "/mcp", session, listTools) // until the front is gone
	}
	r.serves("a newcomer", "/mcp", "", "two")
}

func TestStoppingEndsSessionsUnderOldSettingsToo(t *testing.T) {
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: '"+named(t, "one")+"'\n")
	session := r.session("/mcp")
	stream := r.request(http.MethodGet, "/mcp", session, "")
	r.reload("listen: 127.0.0.1:0\nupstream: '"+named(t, "two")+"'\n", "was reloaded")
	r.stop()
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	if err := r.wait(); err != nil {
		t.Error(err)
	}
}
