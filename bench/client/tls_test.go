package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAddressSaysWhetherToSpeakTLS(t *testing.T) {
	for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Host, "/") {
				t.Errorf("Host: %s", r.Host)
			}
			w.WriteHeader(http.StatusAccepted)
		}))
		addr := strings.TrimPrefix(server.URL, "http://")
		c := NewConn(addr, 4096)
		if err := c.Send("GET / HTTP/1.1\r\nHost: "+NewSession(addr, c, c).host+"\r\n\r\n", nil); err != nil {
			t.Fatal(err)
		}
		if err := c.ReadHead(); err != nil || c.Status != http.StatusAccepted {
			t.Errorf("%s: %d, %v", addr, c.Status, err)
		}
		c.Close()
		server.Close()
	}
}
