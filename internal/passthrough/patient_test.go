package passthrough

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// flowing is a response that goes on until it is closed.
type flowing struct{ closed chan struct{} }

func (e flowing) Read(b []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, net.ErrClosed
	default:
		return len(b), nil
	}
}

func (e flowing) Close() error { close(e.closed); return nil }

// RoundTrip implements http.RoundTripper.
func (e flowing) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: e, ContentLength: -1, Request: r}, nil
}

// late is the connection of a client that has stopped reading, when its deadline has passed.
type late struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (c *late) SetWriteDeadline(t time.Time) error { c.until = t; return nil }
func (c *late) Write([]byte) (int, error)          { return 0, os.ErrDeadlineExceeded }

// A client that reads nothing of a response that is handed on to it is given up after a
// minute, and the request at the server with it: also where net/http serves, which bounds
// no write by itself.
func TestD11ClientThatReadsNothingOfAPassedResponseIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := flowing{make(chan struct{})}
		p := New(Options{URL: &url.URL{Scheme: "http", Host: "server"}, Wrap: func(http.RoundTripper) http.RoundTripper { return server }})
		defer p.Close()
		rec := &late{ResponseRecorder: httptest.NewRecorder()}
		p.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")))
		if bound := time.Until(rec.until); bound != time.Minute {
			t.Errorf("a write is bounded by %v", bound)
		}
		select {
		case <-server.closed:
		default:
			t.Error("the request at the server goes on")
		}
	})
}

func TestTheBoundOfAPassedResponseGoesOnWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &late{ResponseRecorder: httptest.NewRecorder()}
		var traffic traffic
		traffic.open()
		w := &patient{ResponseWriter: rec, traffic: &traffic}
		for _, pause := range []time.Duration{0, 20 * time.Second, 20 * time.Second, time.Hour} {
			time.Sleep(pause)
			_, _ = w.Write(nil)
			if left := time.Until(rec.until); left < 30*time.Second || left > time.Minute {
				t.Errorf("%v later a write is bounded by %v", pause, left)
			}
		}
	})
}

// stalled is the connection of a client that has stopped reading: a write fails when it may
// take no longer than lastWords, which is done here without waiting for that.
type stalled struct {
	*httptest.ResponseRecorder
	writing, cut func() // called once each: with the first write, and when there is no more patience
	failing      <-chan struct{}
}

func (c *stalled) SetWriteDeadline(t time.Time) error {
	if time.Until(t) <= lastWords {
		c.cut()
	}
	return nil
}

func (c *stalled) Write([]byte) (int, error) {
	c.writing()
	<-c.failing
	return 0, os.ErrDeadlineExceeded
}

func TestAClientThatReadsNothingHoldsUpNoEnd(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, serve := range map[string]func() (http.Handler, func()){
		"from a server over HTTP": func() (http.Handler, func()) {
			server := flowing{make(chan struct{})}
			p := New(Options{URL: &url.URL{Scheme: "http", Host: "server"}, Wrap: func(http.RoundTripper) http.RoundTripper { return server }})
			return p, p.Close
		},
		"from a process": func() (http.Handler, func()) {
			p := NewProcess(ProcessOptions{WriteTimeout: time.Hour, CommitDelay: time.Hour, Server: &scripted{verbatim: func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
				return &upstream.Answer{Result: []byte(`"` + large + `"`)}, nil
			}}})
			return p, p.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, end := serve()
				written, failing := make(chan struct{}), make(chan struct{})
				once := func(c chan struct{}) func() { return sync.OnceFunc(func() { close(c) }) }
				go p.ServeHTTP(&stalled{httptest.NewRecorder(), once(written), once(failing), failing}, request("tools/list", "", ""))
				<-written
				end()
			})
		})
	}
}
