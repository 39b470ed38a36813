package passthrough

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// slow is a server whose connections are served by a function, which gets each request and its body. It notes what
// comes, and whose connections are closed.
type slow struct {
	serve func(nc net.Conn, r *http.Request)

	mu    sync.Mutex
	said  []string // bodies
	named []string // the sessions of those
	left  int      // connections that were closed while served
}

func (s *slow) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		r, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.said, s.named = append(s.said, string(body)), append(s.named, r.Header.Get(mcp.HeaderSessionID))
		s.mu.Unlock()
		if strings.Contains(string(body), mcp.NotificationCancelled) {
			_, _ = io.WriteString(far, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
			return
		}
		s.serve(far, r)
		_, err = far.Read(make([]byte, 1)) // which comes when it is closed
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.left++
		}
	}()
	return near, nil
}

// again writes a text every second, until nobody reads it.
func again(text string) func(net.Conn, *http.Request) {
	return func(nc net.Conn, _ *http.Request) {
		for {
			if _, err := io.WriteString(nc, text); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
}

// first writes a text, and goes on with then.
func first(text string, then func(net.Conn, *http.Request)) func(net.Conn, *http.Request) {
	return func(nc net.Conn, r *http.Request) {
		_, _ = io.WriteString(nc, text)
		then(nc, r)
	}
}

func silent(net.Conn, *http.Request) {}

const (
	streams200 = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	gzip200    = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
	json200    = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
	advances   = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"
)

// passedTo has a request handed on to a server, with a pace of 4 s and 8 s for all, and returns its response,
// whether that was broken off, and how long it took.
func passedTo(s *slow, opt Options, r *http.Request) (rec *httptest.ResponseRecorder, aborted bool, took time.Duration) {
	opt.URL, opt.Dial = &url.URL{Scheme: "http", Host: "server"}, s.dial
	if opt.Limits == (Limits{}) {
		opt.Limits = Limits{Round: 4 * time.Second, Call: 8 * time.Second}
	}
	p := New(opt)
	defer p.Close()
	rec, began := httptest.NewRecorder(), time.Now()
	func() {
		defer func() { aborted = recover() == http.ErrAbortHandler }()
		p.ServeHTTP(rec, r)
	}()
	took = time.Since(began)
	synctest.Wait()
	time.Sleep(3 * time.Second) // what is told the server has its time
	return rec, aborted, took
}

// asking is a request of a client of one era.
func asking(modern bool, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(body))), nil }
	r.Header.Set("Accept-Encoding", "identity") // what comes is read, where nothing unpacks it
	if modern {
		r.Header.Set(mcp.HeaderMethod, "tools/call")
	} else {
		r.Header.Set(mcp.HeaderSessionID, "s")
	}
	return r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{})) // else ReverseProxy does not abort
}

// A server that takes too long for what is handed on to it is given up, as it is over connections, whatever it does
// meanwhile; its client is told as far as its response lets that be said, and so is the server.
func TestAServerIsHeldToItsTimeForWhatIsHandedOn(t *testing.T) {
	const round, flow = 4 * time.Second, 8 * time.Second
	for name, tc := range map[string]struct {
		serves         func(net.Conn, *http.Request)
		modern, legacy time.Duration
		status         int
		aborted        bool
	}{
		"no head":                     {silent, round, flow, 504, false},
		"a head without end":          {first("HTTP/1.1 200 OK\r\n", again("X-A: b\r\n")), round, flow, 504, false},
		"interim responses":           {again("HTTP/1.1 100 Continue\r\n\r\n"), round, flow, 504, false},
		"a stream of nothing":         {first(streams200, silent), round, flow, 200, false},
		"a stream of comments":        {first(streams200, again(":\n\n")), round, flow, 200, false},
		"a stream of progress":        {first(streams200, again(advances)), flow, flow, 200, false},
		"half a response":             {first(json200, silent), round, round, 200, true},
		"a response byte by byte":     {first(json200, again(" ")), flow, flow, 200, true},
		"progress, then nothing":      {first(streams200+advances, silent), round, flow, 200, false},
		"half a message, and nothing": {first(streams200+"data: {", again(" ")), round, flow, 200, false},
		"what is compressed, silent":  {first(gzip200+"\x1f\x8b", silent), round, flow, 200, true},
		"what is compressed":          {first(gzip200, again("\x1f\x8b")), flow, flow, 200, true},
	} {
		for _, modern := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", modern ", modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &slow{serve: tc.serves}
					want, setting := tc.legacy, "timeouts.round"
					if modern {
						want = tc.modern
					}
					if want == flow {
						setting = "timeouts.flow"
					}
					rec, aborted, took := passedTo(s, Options{}, asking(modern, asksOne))
					if took != want || rec.Code != tc.status || aborted != tc.aborted {
						t.Errorf("it ends after %v with %d, aborted: %t: %s", took, rec.Code, aborted, rec.Body)
					}
					if told := strings.Contains(rec.Body.String(), `"id":"a-1","error":{"code":-32603,"message":"the server `) && strings.Contains(rec.Body.String(), setting); told == aborted {
						t.Errorf("its client is told %q", rec.Body)
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					const cancels = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a-1","reason":"timed out"}}`
					if told := len(s.said) == 2 && s.said[1] == cancels && s.named[1] == "s"; told == modern || s.left == 0 {
						t.Errorf("the server hears %q, and the end of %d connections", s.said, s.left)
					}
				})
			})
		}
	}
}

// A legacy server that has the client asked something on the session's stream may wait for a person, before it has
// answered anything.
func TestAServerThatAsksElsewhereIsNotSilent(t *testing.T) {
	for name, tc := range map[string]struct {
		session, head, event string
		want                 time.Duration
	}{
		"a question":                    {"s", streams200, advances, 8 * time.Second},
		"a comment":                     {"s", streams200, ":\n\n", 4 * time.Second},
		"what may be a question":        {"s", gzip200, "\x1f\x8b", 8 * time.Second},
		"nothing that is compressed":    {"s", gzip200, "", 4 * time.Second},
		"a question in another session": {"t", streams200, advances, 8 * time.Second}, // this one may have its stream elsewhere
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{serve: func(nc net.Conn, r *http.Request) {
					if r.Method == http.MethodGet {
						_, _ = io.WriteString(nc, tc.head)
						time.Sleep(2 * time.Second)
						_, _ = io.WriteString(nc, tc.event)
					}
				}}
				p := New(Options{URL: &url.URL{Scheme: "http", Host: "server"}, Dial: s.dial, Limits: Limits{Round: 4 * time.Second, Call: 8 * time.Second}})
				leave := opensStream(t, p, tc.session)
				began, rec := time.Now(), httptest.NewRecorder()
				p.ServeHTTP(rec, asking(false, asksOne))
				if took := time.Since(began); took != tc.want || rec.Code != http.StatusGatewayTimeout {
					t.Errorf("it ends after %v with %d", took, rec.Code)
				}
				time.Sleep(time.Hour)
				if p.heard.all[tc.session] == nil {
					t.Error("the stream has ended, too")
				}
				leave()
				if p.Close(); len(p.heard.all) > 0 {
					t.Error("a stream that is over is remembered")
				}
			})
		})
	}
}

// opensStream opens the stream of a session at a proxy, until leave is called.
func opensStream(t *testing.T, p *Proxy, session string) (leave func()) {
	ctx, cancel := context.WithCancel(t.Context())
	listening := httptest.NewRequestWithContext(ctx, http.MethodGet, "/mcp", http.NoBody)
	listening.Header.Set(mcp.HeaderSessionID, session)
	listening.Header.Set("Accept-Encoding", "identity")
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }() // it is cut off
		p.ServeHTTP(httptest.NewRecorder(), listening)
	}()
	synctest.Wait()
	return func() { cancel(); <-over }
}

// What a session is asked is known only to the proxy that has its stream, and only while that is open: a reload leaves
// it to the mount from before, another replica may have it, and what was asked over one that broke is still open.
func TestAServerMayAskWhereNobodyHears_A16(t *testing.T) {
	const round, flow = 4 * time.Second, 8 * time.Second
	asks := &slow{serve: func(nc net.Conn, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(nc, streams200)
			time.Sleep(2 * time.Second)
			_, _ = io.WriteString(nc, advances)
		}
	}}
	quiet := &slow{serve: func(nc net.Conn, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(nc, streams200)
		}
	}}
	for name, tc := range map[string]struct {
		server  *slow
		session string // of the request
		stream  func(t *testing.T, here, there *Proxy) (end func())
		want    time.Duration
	}{
		"the stream is here, and quiet": {quiet, "s", func(t *testing.T, here, _ *Proxy) func() { return opensStream(t, here, "s") }, round},
		"it is at another proxy":        {asks, "s", func(t *testing.T, _, there *Proxy) func() { return opensStream(t, there, "s") }, flow},
		"it broke after the question": {asks, "s", func(t *testing.T, here, _ *Proxy) func() {
			leave := opensStream(t, here, "s")
			time.AfterFunc(3*time.Second, leave)
			return leave
		}, flow},
		"it was opened here again after the question": {quiet, "s", func(t *testing.T, here, _ *Proxy) func() {
			opened := make(chan func(), 1)
			time.AfterFunc(3*time.Second, func() { opened <- opensStream(t, here, "s") })
			return func() { (<-opened)() }
		}, flow},
		"a request without a session": {quiet, "", func(*testing.T, *Proxy, *Proxy) func() { return func() {} }, round},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := Options{URL: &url.URL{Scheme: "http", Host: "server"}, Dial: tc.server.dial, Limits: Limits{Round: round, Call: flow}}
				here, there := New(opt), New(opt)
				defer here.Close()
				defer there.Close()
				end := tc.stream(t, here, there)
				defer end()
				r := asking(false, asksOne)
				if tc.session == "" {
					r.Header.Del(mcp.HeaderSessionID)
				}
				began, rec := time.Now(), httptest.NewRecorder()
				here.ServeHTTP(rec, r)
				if took := time.Since(began); took != tc.want || rec.Code != http.StatusGatewayTimeout {
					t.Errorf("it ends after %v with %d", took, rec.Code)
				}
			})
		})
	}
}

// What has no end by its nature has no bound, and nothing else has none by saying so.
func TestOnlyWhatNeverEndsHasNoBound(t *testing.T) {
	for body, endless := range map[string]bool{
		`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}`: true,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`:           false,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Options{URL: &url.URL{Scheme: "http", Host: "server"}, Dial: (&slow{serve: silent}).dial})
			r, done := asking(true, body), make(chan struct{})
			r.Header.Set(mcp.HeaderMethod, mcp.MethodListen)
			go func() {
				defer close(done)
				p.ServeHTTP(httptest.NewRecorder(), r)
			}()
			time.Sleep(24 * time.Hour)
			select {
			case <-done:
				if endless {
					t.Errorf("%s has ended", body)
				}
			default:
				if !endless {
					t.Errorf("%s goes on", body)
				}
			}
			p.Close()
			<-done
		})
	}
}

// signsIn hands a request on after a time, as a person signs in.
type signsIn struct{ base http.RoundTripper }

func (s signsIn) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Second)
	return s.base.RoundTrip(r)
}

// The time that others take is not the server's.
func TestNobodyElseMakesAServerSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{serve: first(streams200, func(nc net.Conn, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(nc, advances)
			}
			_ = nc.Close()
		})}
		p := New(Options{
			URL: &url.URL{Scheme: "http", Host: "server"}, Dial: s.dial, Limits: Limits{Round: 4 * time.Second, Call: time.Hour},
			Wrap: func(base http.RoundTripper) http.RoundTripper { return signsIn{base} },
		})
		defer p.Close()
		rec := httptest.NewRecorder()
		if p.ServeHTTP(rec, asking(true, asksOne)); rec.Body.String() != strings.Repeat(advances, 3) {
			t.Errorf("it gets %q", rec.Body)
		}
		ended := false
		of, stop := p.opt.Limits.keepPace(asking(true, asksOne), nil, func(error) { ended = true })
		defer stop()
		for range 3 { // as a client reads slowly
			of.wait()
			time.Sleep(time.Second)
			of.got(false)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if ended {
			t.Error("a slow client counts as a silent server")
		}
		of.wait()
		time.Sleep(2 * time.Second)
		if synctest.Wait(); !ended {
			t.Error("silences do not add up")
		}
	})
}

// Messages are told from comments, wherever a stream is cut.
func TestMessagesAreToldFromComments(t *testing.T) {
	for text, want := range map[string]bool{
		"data: x\n\n": true, ":x\ndata\n": true, ":\rdata: x": true, "event: message\r\ndata: {}": true,
		": data: x\n\n": false, ":data\n:data\r\n": false, "id: 1\n\n": false, "": false,
	} {
		for cut := range len(text) + 1 {
			var m messages
			before, after := m.in([]byte(text[:cut])), m.in([]byte(text[cut:]))
			if (before || after) != want {
				t.Errorf("%q cut at %d is a message: %t", text, cut, !want)
			}
		}
	}
}
