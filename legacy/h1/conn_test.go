package h1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// number is a handler that numbers the requests of its connection.
func number(t testing.TB) http.HandlerFunc {
	var mu sync.Mutex
	count := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		count[r.RemoteAddr]++
		_, _ = fmt.Fprintf(w, "%d%s", count[r.RemoteAddr], body)
	}
}

func TestConnectionServesManyRequests(t *testing.T) {
	_, addr := serve(t, number(t))
	w := dial(t, addr)
	for i := range 50 {
		body := strings.Repeat("x", i*100)
		w.send(post(body))
		if got := w.body(); got != strconv.Itoa(i+1)+body {
			t.Fatalf("request %d: %.20q", i, got)
		}
	}
}

func TestPipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	_, addr := serve(t, number(t))
	for _, size := range []int{0, 10, 1000, 3900, 5000, 20000} {
		w := dial(t, addr)
		const n = 20
		var all strings.Builder
		for i := range n {
			all.WriteString(post(strings.Repeat("p", size+i)))
			all.WriteString(get)
		}
		go w.send(all.String())
		for i := range 2 * n {
			want := 0
			if i%2 == 0 {
				want = size + i/2
			}
			if got := w.body(); !strings.HasPrefix(got, fmt.Sprint(i+1)) || strings.Count(got, "p") != want {
				t.Fatalf("size %d, response %d: %.20q with %d bytes", size, i, got, len(got))
			}
		}
	}
}

func TestRequestsThatComeByteByByte(t *testing.T) {
	_, addr := serve(t, number(t))
	w := dial(t, addr)
	for i := range 2 {
		for _, c := range post("ab") {
			w.send(string(c))
		}
		if got := w.body(); got != fmt.Sprint(i+1)+"ab" {
			t.Fatalf("%q", got)
		}
	}
}

// A client may close its sending half before it has the answer.
func TestHalfClosedClientGetsItsAnswer(t *testing.T) {
	_, addr := serve(t, number(t))
	w := dial(t, addr)
	w.send(get + get)
	_ = w.Conn.(*net.TCPConn).CloseWrite()
	for i := range 2 {
		if got := w.body(); got != fmt.Sprint(i+1) {
			t.Fatalf("%q", got)
		}
	}
	if !w.closed() {
		t.Fatal("the connection is open")
	}
}

// What is unusual goes to net/http, with all that follows on its connection.
func TestOtherRequestsAreServedByNetHTTP(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rc := http.NewResponseController(w)
		_, lean := w.(*response)
		_, _ = fmt.Fprint(w, r.Method, r.Proto, r.URL, string(body), lean, rc.SetWriteDeadline(time.Time{}))
	}
	_, addr := serve(t, handler)
	chunked := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	for _, before := range []string{"", get} {
		for request, want := range map[string]string{
			chunked:                                       "POSTHTTP/1.1/abcfalse <nil>",
			"GET / HTTP/1.0\r\nHost: a\r\n\r\n":           "GETHTTP/1.0/false <nil>",
			"PATCH / HTTP/1.1\r\nHost: a\r\n\r\n":         "PATCHHTTP/1.1/false <nil>",
			"GET / HTTP/1.1\nHost: a\n\n":                 "GETHTTP/1.1/false <nil>",
			"GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n":  "GETHTTP/1.1http://b/xfalse <nil>",
			"GET / HTTP/1.1\r\n\r\n":                      "400 Bad Request: missing required Host header",
			"nonsense\r\n\r\n":                            "400 Bad Request",
			"GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n": "400 Bad Request: invalid header name",
			"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 10000) + "\r\n\r\n": "GETHTTP/1.1/false <nil>",
		} {
			w := dial(t, addr)
			w.send(before + request)
			if before != "" {
				if got := w.body(); got != "GETHTTP/1.1/true <nil>" {
					t.Fatalf("%q", got)
				}
			}
			if got := w.body(); got != want {
				t.Errorf("%.40q: %q", request, got)
			}
		}
	}
	w := dial(t, addr)
	w.send(get + chunked + get)
	for _, want := range []string{"GETHTTP/1.1/true <nil>", "POSTHTTP/1.1/abcfalse <nil>"} {
		if got := w.body(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !w.closed() {
		t.Error("what stands behind chunks is served")
	}
}

func TestHalfAHeadGetsTheWordOfNetHTTP(t *testing.T) {
	_, addr := serve(t, number(t))
	w := dial(t, addr)
	w.send("GET / HTTP/1.1\r\nHo")
	_ = w.Conn.(*net.TCPConn).CloseWrite()
	if resp, _ := w.read(); resp.StatusCode != http.StatusBadRequest {
		t.Fatal(resp.Status)
	}
}

func TestHTTP2WithPriorKnowledgeIsServed(t *testing.T) {
	standard := &http.Server{Protocols: new(http.Protocols)}
	standard.Protocols.SetHTTP1(true)
	standard.Protocols.SetUnencryptedHTTP2(true)
	_, addr := serveWith(t, echo, standard)
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	for range 2 {
		resp, err := (&http.Client{Transport: tr}).Post("http://"+addr, "text/plain", strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 || string(b) != "abc" {
			t.Fatalf("%s %q", resp.Proto, b)
		}
	}
}

type key struct{}

func TestRequestsInheritFromTheirConnection(t *testing.T) {
	standard := &http.Server{ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, key{}, c.RemoteAddr().String())
	}}
	_, addr := serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		ok := ctx.Value(key{}) == r.RemoteAddr && ctx.Value(http.ServerContextKey) == standard &&
			ctx.Value(http.LocalAddrContextKey).(net.Addr).String() == r.Context().Value(http.LocalAddrContextKey).(net.Addr).String() &&
			Of(standard) != nil && Of(&http.Server{}) == nil
		_, _ = fmt.Fprint(w, ok)
	}, standard)
	w := dial(t, addr)
	w.send(get)
	if got := w.body(); got != "true" {
		t.Fatal(got)
	}
}

// A connection that comes back, with what was read of it elsewhere.
func TestReturnedConnectionsAreServed(t *testing.T) {
	s, _ := serve(t, number(t))
	for _, ahead := range []int{0, 5, len(get), len(get) + 3, 2 * len(get), 3 * len(post(strings.Repeat("z", 3000)))} {
		near, far := tcpPair(t)
		all := get + get
		if ahead > len(all) {
			all = strings.Repeat(post(strings.Repeat("z", 3000)), 3)
		}
		s.GoOn(far, []byte(all[:ahead]))
		w := &wire{t, near, bufio.NewReader(near)}
		w.send(all[ahead:])
		for i := range strings.Count(all, "HTTP/1.1") {
			if got := w.body(); !strings.HasPrefix(got, fmt.Sprint(i+1)) {
				t.Fatalf("%d ahead: %.20q", ahead, got)
			}
		}
	}
}

func tcpPair(t testing.TB) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	return near, far
}

// RFC 9112 6.3: who believes the other length takes a part of the body for the
// next request.
func TestARequestWithTwoLengthsIsRefused(t *testing.T) {
	for _, fields := range []string{
		"Content-Length: 4\r\nTransfer-Encoding: chunked",
		"transfer-encoding: chunked\r\nX: y\r\ncontent-length: 4",
		"Transfer-Encoding : chunked\r\nContent-Length: 4",
		"Transfer-Encoding: identity\r\nContent-Length: 4",
	} {
		_, addr := serve(t, number(t))
		w := dial(t, addr)
		w.send(post("{}"))
		if got := w.body(); got != "1{}" {
			t.Fatalf("%q", got)
		}
		w.send("POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n\r\n0\r\n\r\n" + post("smuggled"))
		resp, body := w.read()
		if resp.StatusCode != http.StatusBadRequest || !resp.Close || !strings.Contains(body, "not both") || !w.closed() {
			t.Errorf("%q: %d %q", fields, resp.StatusCode, body)
		}
	}
}
