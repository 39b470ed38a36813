package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// bearer is the header of a token that nobody has checked, the n-th of a subject.
func bearer(subject string, n int) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return "Bearer " + part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"iss":"https://as","sub":%q,"jti":"%d"}`, subject, n)) + ".c2lnbmVk"
}

// crew is one bridge or several, which may share a store, before a server that takes every token.
type crew struct {
	*trio
	file bool
}

// eachCrew runs a test without a store, with a file, and with replicas.
func eachCrew(t *testing.T, test func(t *testing.T, c *crew)) {
	alone := func(t *testing.T, args ...string) *crew {
		f := &trio{t: t, asker: newAsker(t)}
		server := httptest.NewServer(f.asker)
		t.Cleanup(server.Close)
		k := launch(t, append([]string{"--upstream", server.URL}, args...)...)
		f.on = [3]*killable{k, k, k}
		return &crew{trio: f}
	}
	t.Run("memory", func(t *testing.T) { test(t, alone(t)) })
	t.Run("file", func(t *testing.T) {
		c := alone(t, "--store.url", "file:"+filepath.Join(t.TempDir(), "sessions.db"))
		c.file = true
		test(t, c)
	})
	t.Run("replicas", func(t *testing.T) { test(t, &crew{trio: newTrio(t)}) })
}

// as makes a request with a token, and returns how it is answered.
func (c *crew) as(on int, token, method, body string) int {
	c.t.Helper()
	resp := c.on[on].request(method, body, "Authorization", token)
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (c *crew) want(what string, on int, token, method, body string, want int) {
	c.t.Helper()
	if got := c.as(on, token, method, body); got != want {
		c.t.Errorf("%s at replica %d is answered %d, want %d", what, on, got, want)
	}
}

// openAs opens a session with a token.
func (c *crew) openAs(token string) {
	c.t.Helper()
	c.on[0].session = ""
	session := c.on[0].request(http.MethodPost, initializeAsking, "Authorization", token).Header.Get("Mcp-Session-Id")
	for _, k := range c.on {
		k.session = session
	}
}

// askAs makes a call with a token, and returns its stream and its question's id.
func (c *crew) askAs(on int, token string) (*following, string) {
	c.t.Helper()
	stream := c.on[on].follow(c.on[on].request(http.MethodPost, callAsk, "Authorization", token))
	return stream, fmt.Sprint(stream.message()["id"])
}

func (s *following) toItsEnd() {
	for {
		if _, err := s.d.Next(); err != nil {
			return
		}
	}
}

const cancelCall = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}`

var (
	renewed = bearer("alice", 2)
	others  = map[string]string{"renewed": renewed, "opaque": "Bearer opaque", "of somebody else": bearer("mallory", 1)}
)

// What a server that takes every token says of one is nothing: until a call has brought it, it opens nothing.
// Told 202, its client would take its person's answer for taken; a 503 would have it try for ever, and tell
// whoever knows the session's id what waits there.
func TestWhatATokenAnswersAndCancelsThatNothingIsKnownOfIs404_H6(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *crew) {
		c.openAs(bearer("alice", 1))
		stream, id := c.askAs(0, bearer("alice", 1))
		for name, token := range others {
			for on := range c.on {
				c.want(name+": the answer", on, token, http.MethodPost, acceptedAnswer(id), 404)
				c.want(name+": an answer to nothing", on, token, http.MethodPost, acceptedAnswer("none"), 404)
				c.want(name+": its cancellation", on, token, http.MethodPost, cancelCall, 404)
				c.want(name+": a cancellation of nothing", on, token, http.MethodPost, strings.Replace(cancelCall, "call", "none", 1), 404)
				c.want(name+": the answer in an array", on, token, http.MethodPost, "["+acceptedAnswer(id)+"]", 404)
				c.want(name+": its cancellation in an array", on, token, http.MethodPost, "["+cancelCall+"]", 404)
				c.want(name+": GET", on, token, http.MethodGet, "", 404)
				c.want(name+": what has no effect", on, token, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, 202)
			}
		}
		c.want("the owner's answer to nothing", 1, bearer("alice", 1), http.MethodPost, acceptedAnswer("none"), 202)
		c.want("his cancellation of nothing", 1, bearer("alice", 1), http.MethodPost, strings.Replace(cancelCall, "call", "none", 1), 202)
		c.want("a call", 2, renewed, http.MethodPost, listTools, 200)
		c.want("the answer after it", 1, renewed, http.MethodPost, acceptedAnswer(id), 202)
		wantDone(t, stream.message())
		wantRounds(t, c.asker, 1)
		c.want("the answer again", 2, renewed, http.MethodPost, acceptedAnswer(id), 202)
	})
}

// A call by which the server accepts a newer token is its owner's, and so is what that token began before.
func TestACallThatBringsANewerTokenIsAnsweredWithIt_H6(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *crew) {
		for on := range c.on {
			c.openAs(bearer("alice", 1))
			stream, id := c.askAs(0, renewed)
			c.want("the answer", on, renewed, http.MethodPost, acceptedAnswer(id), 202)
			wantDone(t, stream.message())

			newest := bearer("alice", 3)
			stream, id = c.askAs(0, newest)
			c.want("a call with the next token", 2, bearer("alice", 4), http.MethodPost, strings.Replace(callAsk, `"call"`, `"other"`, 1), 200)
			if c.file {
				c.on[0].again()
				stream = c.on[0].follow(c.on[0].request(http.MethodGet, "", "Authorization", bearer("alice", 4), "Last-Event-ID", stream.last))
			}
			c.want("the answer with that one", on, bearer("alice", 4), http.MethodPost, acceptedAnswer(id), 202)
			wantDone(t, stream.message())

			stream, _ = c.askAs(1, bearer("alice", 5))
			c.want("the cancellation", on, bearer("alice", 5), http.MethodPost, cancelCall, 202)
			stream.toItsEnd()
		}
		if n, _ := c.asker.seen(); n != 2*len(c.on) {
			t.Errorf("the server got %d second rounds", n)
		}
	})
}

// Who brings a token that opens nothing answers what his own calls ask, wherever they wait.
func TestWhoOwnsNothingAnswersItsOwnCalls_H6(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *crew) {
		owner, visitor := bearer("alice", 1), "Bearer opaque"
		c.openAs(owner)
		for on := range c.on {
			stream, id := c.askAs(0, visitor)
			c.want("the owner's answer", on, owner, http.MethodPost, acceptedAnswer(id), 202)
			c.want("his cancellation", on, owner, http.MethodPost, cancelCall, 202)
			c.want("an answer of somebody else", on, bearer("mallory", 1), http.MethodPost, acceptedAnswer(id), 404)
			if c.file {
				c.on[0].again()
				c.want("its answer after a restart", on, visitor, http.MethodPost, acceptedAnswer(id), 202)
				<-c.asker.arrived
			} else {
				c.want("its answer", on, visitor, http.MethodPost, acceptedAnswer(id), 202)
				wantDone(t, stream.message())
			}
			stream, _ = c.askAs(1, visitor)
			c.want("its cancellation", on, visitor, http.MethodPost, cancelCall, 202)
			stream.toItsEnd()
		}
	})
}
