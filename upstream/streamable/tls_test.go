package streamable

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

func newTLSServer(t *testing.T, h2 bool) (*httptest.Server, chan int) {
	major := make(chan int, 10)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		major <- r.ProtoMajor
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		msg, _ := jsonrpc.Parse(body)
		answer(w, msg.ID, `{}`)
	}))
	srv.EnableHTTP2 = h2
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, major
}

func TestHTTPSUsesHTTP2WhereItIsOffered(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		srv, major := newTLSServer(t, h2)
		c := newClient(t, srv.URL, Options{TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
		answer, err := c.Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]observe.HTTP{false: observe.HTTP11, true: observe.HTTP2}[h2]; answer.HTTP != want {
			t.Errorf("the answer says HTTP/%s, want HTTP/%s", answer.HTTP, want)
		}
		if got, want := <-major, map[bool]int{false: 1, true: 2}[h2]; got != want {
			t.Errorf("HTTP/%d, want HTTP/%d", got, want)
		}
	}
}

func TestTLSFailuresSayWhatToDo(t *testing.T) {
	srv, _ := newTLSServer(t, false)
	known := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client := httptest.NewUnstartedServer(http.NotFoundHandler())
	client.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	client.StartTLS()
	defer client.Close()
	plainServer := httptest.NewServer(http.NotFoundHandler())
	defer plainServer.Close()
	for _, tc := range []struct {
		name, url string
		tls       *tls.Config
		text      string
	}{
		{"unknown authority", srv.URL, nil, "CA file"},
		{"another name", strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), known, "not valid for localhost"},
		{"plain server", strings.Replace(plainServer.URL, "http:", "https:", 1), nil, "http://"},
		{"client certificate missing", client.URL, &tls.Config{InsecureSkipVerify: true}, "certificate"},
	} {
		_, err := newClient(t, tc.url, Options{TLS: tc.tls}).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		f, ok := err.(*upstream.Failure)
		if !ok || f.Cause != upstream.TLS || f.Sent || !strings.Contains(f.Error(), tc.text) {
			t.Errorf("%s: %v (%+v)", tc.name, err, f)
		}
	}
}

func TestPlainHTTPToATLSPort(t *testing.T) {
	srv, _ := newTLSServer(t, false)
	eachTransport(t, func(t *testing.T, opt Options) {
		_, err := newClient(t, strings.Replace(srv.URL, "https:", "http:", 1), opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.TLS || !strings.Contains(f.Error(), "https://") {
			t.Fatalf("error %v", err)
		}
	})
}
