package mount

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What is passed through keeps as few idle connections to the server as what is translated.
func TestWhatIsPassedThroughKeepsFewIdleConnections(t *testing.T) {
	const many, few = 6, 2
	begun, goOn, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}, many)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-goOn }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	opt := over(server.URL)
	opt.Upstream.MaxIdle = few
	r, err := newRemote(&opt, &verdicts{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.proxy.Close)
	for range many {
		go r.proxy.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, server.URL, strings.NewReader("{}")))
	}
	for range many {
		<-begun
	}
	close(goOn)
	for range many - few {
		select {
		case <-closed:
		case <-patience(t).Done():
			t.Fatal("they stay open")
		}
	}
}
