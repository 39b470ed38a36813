package streamable

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

func newTLSServer(t *testing.T) (*httptest.Server, chan int) {
	major := make(chan int, 10)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		major <- r.ProtoMajor
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		msg, _ := jsonrpc.Parse(body)
		answer(w, msg.ID, `{}`)
	}))
	srv.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, major
}

func TestHTTPSIsHTTP1WhateverTheServerHas(t *testing.T) {
	srv, major := newTLSServer(t)
	c := newClient(t, srv.URL, Options{TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	answer, err := c.Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.HTTP != observe.HTTP11 {
		t.Errorf("the answer says HTTP/%s", answer.HTTP)
	}
	if got := <-major; got != 1 {
		t.Errorf("HTTP/%d", got)
	}
}

// A server that speaks nothing but HTTP/2 agrees to no other protocol, or says what nobody asked it for.
func TestAServerThatSpeaksOnlyHTTP2IsNamed(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.TLS = &tls.Config{NextProtos: []string{"grpc-exp"}}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewUnstartedServer(http.NotFoundHandler())
	plain.Config.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		_, _ = nc.Read(make([]byte, 16<<10))
		_, _ = io.WriteString(nc, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		_ = nc.Close()
		return ctx
	}
	plain.Start()
	defer plain.Close()
	for _, url := range []string{secure.URL, plain.URL} {
		eachTransport(t, func(t *testing.T, opt Options) {
			opt.TLS = &tls.Config{InsecureSkipVerify: true}
			_, err := newClient(t, url, opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
			if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.BadResponse || !strings.Contains(f.Error(), url+" speaks only HTTP/2") {
				t.Errorf("%v (%+v)", err, f)
			}
		})
	}
}

func TestTLSFailuresSayWhatToDo(t *testing.T) {
	srv, _ := newTLSServer(t)
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
	srv, _ := newTLSServer(t)
	eachTransport(t, func(t *testing.T, opt Options) {
		_, err := newClient(t, strings.Replace(srv.URL, "https:", "http:", 1), opt).Do(t.Context(), call(mcp.MethodToolsList, ""), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.TLS || !strings.Contains(f.Error(), "https://") {
			t.Fatalf("error %v", err)
		}
	})
}
