package roundtrip

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/http1"
)

// http.Transport may end a connection for a request that was given up, and tell the next one
// that it was given up. Of that nothing has left: it is sent over another connection.
func TestTheEndOfAnotherRequestIsNotThisOnes(t *testing.T) {
	for name, test := range map[string]struct {
		sends   bool // something leaves before it ends
		gone    bool // the request was given up itself
		foreign error
		want    int
	}{
		"another one's end":             {foreign: context.Canceled, want: 2},
		"another one's, something left": {sends: true, foreign: context.Canceled, want: 1},
		"its own end":                   {gone: true, foreign: context.Canceled, want: 1},
		"a connection that was closed":  {foreign: net.ErrClosed, want: 1},
		"another one's end once more":   {foreign: context.Canceled, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			tr := New(Options{Dial: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }()
				return near, nil
			}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sent := 0
			tr.send = func(r *http.Request) (*http.Response, error) {
				sent++
				text, _ := io.ReadAll(r.Body)
				if string(text) != "whole" {
					t.Errorf("the body is %q", text)
				}
				if sent == 2 && !strings.HasSuffix(name, "once more") {
					return httptest.NewRecorder().Result(), nil
				}
				conn, err := tr.connect(r.Context(), "tcp", "server")
				if err != nil {
					t.Fatal(err)
				}
				httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn, Reused: true})
				if test.sends {
					_, _ = conn.Write(text)
				}
				if test.gone {
					cancel()
				}
				return nil, test.foreign
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/", strings.NewReader("whole"))
			if err != nil {
				t.Fatal(err)
			}
			resp, use, err := tr.Do(r, false)
			if err == nil {
				use.End(true)
				_ = resp.Body.Close()
			}
			if answered := test.want == 2 && !strings.HasSuffix(name, "once more"); sent != test.want || (err == nil) != answered {
				t.Errorf("sent %d times: %v", sent, err)
			}
		})
	}
}

// A status that is none is no response: who hands it on could not write it.
func TestAStatusBelow100IsMalformed(t *testing.T) {
	for _, status := range []string{"099", "000"} {
		tr := New(Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				_, _ = http.ReadRequest(bufio.NewReader(far))
				_, _ = io.WriteString(far, "HTTP/1.1 "+status+" X\r\nContent-Length: 4\r\n\r\nnull")
			}()
			return near, nil
		}})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := tr.RoundTrip(r); !errors.Is(err, http1.ErrMalformed) {
			t.Errorf("%s: %v, %v", status, resp, err)
		}
		tr.CloseIdleConnections()
	}
}
