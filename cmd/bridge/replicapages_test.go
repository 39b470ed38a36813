package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/internal/redistest"
)

// initializeMute opens a session of a client that cannot be asked.
const initializeMute = `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"mute","version":"1"}}}`

var (
	sharedLink = regexp.MustCompile(`http://bridge\.test/questions/q/[\w-]+`)
	sharedMine = regexp.MustCompile(`http://bridge\.test/questions/mine/[\w-]+`)
)

// newAskingTrio returns replicas that ask people on a page.
func newAskingTrio(t *testing.T, args ...string) *trio {
	t.Helper()
	f := newTrio(t, append([]string{"--questions", "page", "--questions.wait", "0s", "--questions.url", "http://bridge.test/questions"}, args...)...)
	session := f.on[0].request(http.MethodPost, initializeMute).Header.Get("Mcp-Session-Id")
	for _, k := range f.on {
		k.session = session
	}
	return f
}

// text makes a request at a replica, and returns what it gets.
func (f *trio) text(on int, body string, header ...string) string {
	f.t.Helper()
	text, err := io.ReadAll(f.on[on].request(http.MethodPost, body, header...).Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// link makes a call at a replica, and returns the link that it gets.
func (f *trio) link(on int, header ...string) string {
	f.t.Helper()
	text := f.text(on, callAsk, header...)
	link := sharedLink.FindString(text)
	if link == "" {
		f.t.Fatalf("the call gets no link: %s", text)
	}
	return link
}

// person is a browser whose requests reach the replica of on.
type person struct {
	t    *testing.T
	trio *trio
	on   int
	http.Client
}

func (f *trio) browser() *person {
	b := &person{t: f.t, trio: f}
	b.Jar, _ = cookiejar.New(nil)
	b.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		address, _, _ := strings.Cut(strings.TrimPrefix(f.on[b.on].url, "http://"), "/")
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	return b
}

// open opens an address at a replica.
func (b *person) open(on int, address string) (status int, page string) {
	b.t.Helper()
	b.on = on
	resp, err := b.Get(address)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// send sends the form of a page at a replica.
func (b *person) send(on int, address, page, fields string) (status int) {
	b.t.Helper()
	guard := pageGuard.FindStringSubmatch(page)
	if guard == nil {
		b.t.Fatalf("no form at %s: %s", address, page)
	}
	b.on = on
	resp, err := b.Post(address, "application/x-www-form-urlencoded", strings.NewReader("guard="+guard[1]+"&"+fields))
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestReplicasServeThePagesOfEachOther: a person's browser reaches any replica, and the question is in the memory
// of one.
func TestReplicasServeThePagesOfEachOther(t *testing.T) {
	f := newAskingTrio(t)
	link := f.link(0)
	b := f.browser()
	status, page := b.open(1, link)
	if status != http.StatusOK {
		t.Fatalf("another replica answers a link with %d: %s", status, page)
	}
	mine := sharedMine.FindString(page)
	for on := range f.on {
		if status, page := b.open(on, mine); status != http.StatusOK || !strings.Contains(page, link) {
			t.Errorf("at replica %d, what waits for the person is %d %s", on, status, page)
		}
	}
	if status := b.send(2, link, page, "action=decline"); status != http.StatusOK {
		t.Fatalf("a third one answers the form with %d", status)
	}
	if status, _ := b.open(1, link); status != http.StatusGone {
		t.Errorf("an answered question is %d", status)
	}
	if text := f.text(0, callAsk); sharedLink.MatchString(text) {
		t.Errorf("the same call asks again: %s", text)
	}
	if n, answers := f.asker.seen(); n != 1 || answers != `s1{"action":"decline"}` {
		t.Errorf("the server got %d answers: %s", n, answers)
	}
}

// TestReplicasServeNoPagesOfDeadOnes: the questions of a replica end with it, as links say then.
func TestReplicasServeNoPagesOfDeadOnes(t *testing.T) {
	t.Parallel()
	f := newAskingTrio(t)
	link := f.link(0)
	f.on[0].kill()
	for on, address := range map[int]string{1: link, 2: link[:len(link)-1] + "x"} {
		if status, page := f.browser().open(on, address); status != http.StatusNotFound || !strings.Contains(page, "no such question") {
			t.Errorf("replica %d answers %d %s", on, status, page)
		}
	}
}

// TestTheSameCallAgainGoesOnWhereItWaits: the client was told to make it again, and a balancer has it reach
// another replica.
func TestTheSameCallAgainGoesOnWhereItWaits(t *testing.T) {
	f := newAskingTrio(t)
	link := f.link(0)
	f.learn(1)
	if again := f.link(1); again != link {
		t.Errorf("before the answer the same call at another replica gets another link")
	}
	b := f.browser()
	_, page := b.open(2, link)
	if status := b.send(2, link, page, "f0=Ada&action=accept"); status != http.StatusOK {
		t.Fatalf("the form is answered %d", status)
	}
	f.learn(2)
	if text := f.text(2, strings.Replace(callAsk, `"name":"ask","arguments":{}`, `"arguments": {},"_meta":{"x":1},"name":"ask"`, 1)); !strings.Contains(text, `"done"`) {
		t.Errorf("the same call at a third one gets %s", text)
	}
	wantRounds(t, f.asker, 1)
}

// TestTheSameCallAgainFindsACallWhoseConnectionBroke: the person has answered, the tool runs, and the client gave up at
// one replica and comes back at another, before or after the tool is done.
func TestTheSameCallAgainFindsACallWhoseConnectionBroke(t *testing.T) {
	for name, late := range map[string]bool{"while the tool runs": false, "when it is done": true} {
		t.Run(name, func(t *testing.T) {
			f := newAskingTrio(t)
			link := f.link(0)
			b := f.browser()
			_, page := b.open(0, link)
			if status := b.send(0, link, page, "f0=Ada&action=accept"); status != http.StatusOK {
				t.Fatalf("the form is answered %d", status)
			}
			f.asker.holds(make(chan struct{}))
			f.loses(0, callAsk)
			if late {
				close(f.asker.hold)
			} else {
				time.AfterFunc(time.Second/2, func() { close(f.asker.hold) })
			}
			f.learn(2)
			if text := f.text(2, callAsk); !strings.Contains(text, `"done"`) {
				t.Errorf("the same call gets %s", text)
			}
			wantRounds(t, f.asker, 1)
			if text := f.text(2, callAsk); !sharedLink.MatchString(text) {
				t.Errorf("what was delivered is given again: %s", text)
			}
		})
	}
}

// loses makes a request at a replica, and has its connection break when the server has it.
func (f *trio) loses(on int, body string) {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodPost, f.on[on].url, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {f.on[on].session}}
	conn, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	if err := r.Write(conn); err != nil {
		f.t.Fatal(err)
	}
	<-f.asker.arrived
}

// learn has a replica look at the session's record, which it changes: it would by itself a moment after
// others have.
func (f *trio) learn(on int) {
	f.t.Helper()
	level := [...]string{"critical", "alert", "emergency"}[on]
	if text := f.text(on, `{"jsonrpc":"2.0","id":"level","method":"logging/setLevel","params":{"level":"`+level+`"}}`); !strings.Contains(text, `"result":{}`) {
		f.t.Fatalf("the level is answered %s", text)
	}
}

// TestTheSameCallAgainIsThatOfTheSamePerson: two people behind one gateway share a session, and make the same call at
// two replicas.
func TestTheSameCallAgainIsThatOfTheSamePerson(t *testing.T) {
	f := newAskingTrio(t)
	links := map[string]string{}
	for on, person := range []string{"ada", "bob"} {
		links[person] = f.link(on, "X-Api-Key", person)
	}
	if page.MarkOf(links["ada"]) == page.MarkOf(links["bob"]) {
		t.Errorf("bob's call is handed to where ada's waits: %v", links)
	}
	f.learn(2)
	for person, link := range links {
		if again := f.link(2, "X-Api-Key", person); again != link {
			t.Errorf("the same call of %s gets another link", person)
		}
	}
}

// TestACallAgainAtAnotherReplicaBeginsAnewWhereNoneWaits: of a replica that is dead, or of other arguments.
func TestACallAgainAtAnotherReplicaBeginsAnewWhereNoneWaits(t *testing.T) {
	t.Parallel()
	f := newAskingTrio(t)
	link := f.link(0)
	f.learn(1)
	if text := f.text(1, strings.Replace(callAsk, `{}`, `{"x":1}`, 1)); !sharedLink.MatchString(text) || strings.Contains(text, link) {
		t.Errorf("another call gets %s", text)
	}
	f.on[0].kill()
	again := f.link(1)
	if again == link {
		t.Error("the link of a replica that is dead is told")
	}
	b := f.browser()
	_, page := b.open(2, again)
	b.send(2, again, page, "f0=Ada&action=accept")
	if text := f.text(1, callAsk); !strings.Contains(text, `"done"`) {
		t.Errorf("the call gets %s", text)
	}
	wantRounds(t, f.asker, 1)
}

// TestACallOfAnImpatientClientGoesOnWhereItWaits: its question went to the client itself, which answers it at another
// replica, and makes the same call again at a third.
func TestACallOfAnImpatientClientGoesOnWhereItWaits(t *testing.T) {
	f := newTrio(t, "--questions.patience", "c: 300ms")
	f.open()
	stream, id := f.ask(0)
	if result := fmt.Sprint(stream.message()["result"]); !strings.Contains(result, "make the same call again") {
		t.Fatalf("the call gets %s", result)
	}
	f.on[1].answer(id)
	f.learn(2)
	if text := f.text(2, callAsk); !strings.Contains(text, `"done"`) {
		t.Errorf("the same call gets %s", text)
	}
	wantRounds(t, f.asker, 1)
}

// TestACallThatWaitsAtOneReplicaAlonePromisesNothing: one without a session is not found from elsewhere, nor is any
// where replicas cannot reach each other.
func TestACallThatWaitsAtOneReplicaAlonePromisesNothing(t *testing.T) {
	f := newAskingTrio(t)
	const promise = "nothing is asked or done twice"
	if text := f.text(0, callAsk); !strings.Contains(text, promise) {
		t.Errorf("a call of a session gets %s", text)
	}
	alone := launch(t, "--upstream", f.on[0].flag("--upstream"), "--store.url", "redis://"+f.redis.Addr()+"?prefix=alone:", "--store.keys", keyFile(t),
		"--questions", "page", "--questions.wait", "0s", "--questions.url", "http://bridge.test/questions")
	alone.session = alone.request(http.MethodPost, initializeMute).Header.Get("Mcp-Session-Id")
	f.on[0].session = ""
	f.on[2] = alone
	if text := f.text(0, callAsk, "Authorization", "Basic YTpi"); !sharedLink.MatchString(text) || strings.Contains(text, promise) {
		t.Errorf("a call without a session gets %s", text)
	}
	if text := f.text(2, callAsk); !sharedLink.MatchString(text) || strings.Contains(text, promise) {
		t.Errorf("without replica.listen a call gets %s", text)
	}
}

// TestValidateTellsWhatNeedsAffinity: the same, to whoever runs the bridge.
func TestValidateTellsWhatNeedsAffinity(t *testing.T) {
	redis, keys := redistest.Start(t), keyFile(t)
	for more, want := range map[string]string{
		"questions: page\n": "set replica.listen",
		"questions: page\nreplica: {listen: '127.0.0.1:0'}\n":                    "set session: required",
		"questions: page\nreplica: {listen: '127.0.0.1:0'}\nsession: required\n": "",
		"questions: default\n": "",
		"tasks: host\n":        "tasks are hosted",
		"tasks: host\nreplica: {listen: '127.0.0.1:0'}\n": "",
	} {
		file := filepath.Join(t.TempDir(), "bridge.yaml")
		if err := os.WriteFile(file, []byte("upstream: http://127.0.0.1:1/mcp\nstore: {url: 'redis://"+redis.Addr()+"', keys: "+keys+"}\n"+more), 0o600); err != nil {
			t.Fatal(err)
		}
		said := prints(t, nil, "config", "validate", file)
		if strings.Contains(said, "the same one each time") != (want != "") || !strings.Contains(said, want) {
			t.Errorf("%s: %s", more, said)
		}
	}
}

// TestOfEqualCallsAtSeveralReplicasTheAnsweredOneGoesOn: made at the same time neither knows of the other, and two
// people, or one twice, are asked.
func TestOfEqualCallsAtSeveralReplicasTheAnsweredOneGoesOn(t *testing.T) {
	f := newAskingTrio(t)
	var call string
	var links [2]string
	for n := 0; links[0] == links[1]; n++ { // until neither has heard of the other
		call = strings.Replace(callAsk, `"arguments":{}`, fmt.Sprintf(`"arguments":{"n":%d}`, n), 1)
		var all sync.WaitGroup
		for on := range links {
			all.Go(func() { links[on] = sharedLink.FindString(f.text(on, call)) })
		}
		all.Wait()
		if links[0] == "" || links[1] == "" {
			t.Fatal("a call gets no link")
		}
	}
	f.learn(2)
	answered := links[0]
	if sharedLink.FindString(f.text(2, call)) == answered {
		answered = links[1] // the one that is not found from there
	}
	b := f.browser()
	_, page := b.open(2, answered)
	if status := b.send(2, answered, page, "f0=Ada&action=accept"); status != http.StatusOK {
		t.Fatalf("the form is answered %d", status)
	}
	done := func() bool { f.learn(2); return strings.Contains(f.text(2, call), `"done"`) }
	for began := time.Now(); !done(); { // the answer's home says so when it has it
		if time.Since(began) > patience {
			t.Fatal("the same call does not go on")
		}
	}
}

// TestTheEndOfASessionClosesItsPages_A30: at whichever replica it ends, and though nothing of it is under way.
func TestTheEndOfASessionClosesItsPages_A30(t *testing.T) {
	f := newAskingTrio(t)
	link := f.link(0)
	if status := f.on[1].status(http.MethodDelete, ""); status != http.StatusNoContent {
		t.Fatalf("DELETE answers %d", status)
	}
	closed := func() bool {
		status, _ := f.browser().open(2, link)
		return status == http.StatusGone || status == http.StatusNotFound
	}
	for began := time.Now(); !closed(); { // the end crosses from process to process
		if time.Since(began) > patience {
			t.Fatal("the page takes answers for a session that has ended")
		}
	}
}
