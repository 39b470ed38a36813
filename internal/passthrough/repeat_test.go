package passthrough

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// D-15: what a server may have executed is not sent again, whatever the client's
// headers promise and although the body could be sent once more.
func TestD15WhatIsPassedOnIsNotRepeated(t *testing.T) {
	var executed atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if executed.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		if got := r.Header.Get("Idempotency-Key"); got != "k" {
			t.Errorf("the server got the key %q", got)
		}
	}))
	defer server.Close()
	proxy := handler(t, server.URL)
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Idempotency-Key", "k")
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("{}"))), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = 2
		proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := executed.Load(); n != 2 {
		t.Errorf("two requests were executed %d times", n)
	}
}
