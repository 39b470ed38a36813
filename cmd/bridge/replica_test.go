package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/internal/redistest"
)

// trio is three bridges that share a Redis, and a client of theirs.
type trio struct {
	t     *testing.T
	redis *redistest.Server
	asker *asker
	on    [3]*killable
}

func newTrio(t *testing.T, args ...string) *trio {
	t.Helper()
	f := &trio{t: t, redis: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), asker: newAsker(t)}
	f.asker.logs = true
	server := httptest.NewServer(f.asker)
	t.Cleanup(server.Close)
	args = append([]string{"--upstream", server.URL, "--store.url", "redis://" + f.redis.Addr(), "--store.keys", keyFile(t), "--replica.listen", "127.0.0.1:0"}, args...)
	for i := range f.on {
		f.on[i] = launch(t, args...)
	}
	return f
}

// open opens a session at the first replica.
func (f *trio) open() {
	f.t.Helper()
	session := f.on[0].request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	for _, k := range f.on {
		k.session = session
	}
}

const callAsk = `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{}}}`

// ask makes a call at a replica, and returns its stream and its question's id.
func (f *trio) ask(on int) (*following, string) {
	f.t.Helper()
	stream := f.on[on].follow(f.on[on].request(http.MethodPost, callAsk))
	q := stream.message()
	if q["method"] != "elicitation/create" {
		f.t.Fatalf("the question is %v", q)
	}
	return stream, fmt.Sprint(q["id"])
}

func (f *trio) wantStatus(on int, method, body string, want int) {
	f.t.Helper()
	if got := f.on[on].status(method, body); got != want {
		f.t.Errorf("replica %d answers %d, want %d", on, got, want)
	}
}

func TestReplicasServeAnyRequestOfASession(t *testing.T) {
	f := newTrio(t)
	f.open()
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
	}
	stream, id := f.ask(0)
	f.on[1].answer(id)
	wantDone(t, stream.message())
	f.on[2].answer(id) // which comes twice
	wantRounds(t, f.asker, 1)
}

func TestReplicasCancelCallsOfEachOther(t *testing.T) {
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.wantStatus(2, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`, http.StatusAccepted)
	for {
		if _, err := stream.d.Next(); err != nil {
			break
		}
	}
	f.on[1].answer(id)
	if n, _ := f.asker.seen(); n != 0 {
		t.Errorf("a cancelled call went on with %d rounds", n)
	}
}

func TestReplicasBringStreamsBackFromEachOther(t *testing.T) {
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	_ = stream.resp.Body.Close()
	number, _, _ := strings.Cut(stream.last, "-")
	lost := f.on[1].resume(number + "-0") // of one that has not had the question
	if q := lost.message(); fmt.Sprint(q["id"]) != id {
		t.Fatalf("the question comes again as %v", q)
	}
	_ = lost.resp.Body.Close()
	back := f.on[2].resume(lost.last)
	f.on[1].answer(id)
	wantDone(t, back.message())
	wantRounds(t, f.asker, 1)
}

func TestReplicasEndSessionsEverywhere(t *testing.T) {
	f := newTrio(t)
	f.open()
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusOK)
	}
	stream, _ := f.ask(0)
	listening := f.on[1].follow(f.on[1].request(http.MethodGet, ""))
	f.wantStatus(2, http.MethodDelete, "", http.StatusNoContent)
	for _, s := range []*following{stream, listening} {
		for {
			if _, err := s.d.Next(); err != nil {
				break // it ended
			}
		}
	}
	for i := range f.on {
		f.wantStatus(i, http.MethodPost, listTools, http.StatusNotFound)
	}
}

// TestReplicasTakeOverFromADeadOne: kill -9 while the person decides.
func TestReplicasTakeOverFromADeadOne(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.on[0].kill()
	f.on[1].answer(id)
	wantDone(t, f.on[2].resume(stream.last).message())
	wantRounds(t, f.asker, 1)
}

// TestReplicasBehindABalancer: without affinity, nobody notices that there are several.
func TestReplicasBehindABalancer(t *testing.T) {
	f := newTrio(t)
	k := f.behind()
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	for range 10 {
		if status := k.status(http.MethodPost, listTools); status != http.StatusOK {
			t.Fatalf("a call answers %d", status)
		}
		stream := k.follow(k.request(http.MethodPost, callAsk))
		k.answer(fmt.Sprint(stream.message()["id"]))
		wantDone(t, stream.message())
	}
	wantRounds(t, f.asker, 10)
}

// behind returns a client of all replicas in turn.
func (f *trio) behind() *killable {
	var next atomic.Uint32
	balancer := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		target, _ := url.Parse(f.on[next.Add(1)%uint32(len(f.on))].url)
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
	}})
	f.t.Cleanup(balancer.Close)
	return &killable{t: f.t, url: balancer.URL + "/mcp"}
}
