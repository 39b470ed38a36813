package mount

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"

	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// opening hands a request on that opens a session of the server. When the server
// answers as no legacy server would, the verdict on it is stale: that ends at
// once, and the client is served as the new one says.
type opening struct {
	server *remote
	again  http.Handler // the mount's own
	owner  relayed.Owner
}

// openingKey is where a request has the owner of the session that it opens at the server; one that
// comes a second time has something else there.
type openingKey struct{}

// ServeHTTP implements http.Handler.
func (o opening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // it has been read, and bounded, before
	if err != nil {
		panic(http.ErrAbortHandler) // nobody is there to be told
	}
	first := &firstAnswer{ResponseWriter: w, header: maps.Clone(w.Header())}
	o.server.proxy.ServeHTTP(first, withBody(r, body).WithContext(context.WithValue(r.Context(), openingKey{}, o.owner)))
	if !first.held {
		return
	}
	if msg, _ := jsonrpc.Parse(first.body.Bytes()); msg.Error == nil || !provesModern(msg.Error.Code) || r.Context().Value(openingKey{}) != nil {
		first.release()
		return
	}
	o.server.verdicts.prober.Forget()
	o.again.ServeHTTP(w, withBody(r, body).WithContext(context.WithValue(r.Context(), openingKey{}, false)))
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}

// maxHeld bounds the body of an answer that is held back, in bytes.
const maxHeld = 64 << 10

// firstAnswer is a ResponseWriter that holds back what could be the answer of a
// modern server to initialize: a short 400 or 404.
type firstAnswer struct {
	http.ResponseWriter
	header http.Header // of what is held back
	status int
	held   bool
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (f *firstAnswer) Header() http.Header { return f.header }

// WriteHeader implements http.ResponseWriter.
func (f *firstAnswer) WriteHeader(status int) {
	f.status = status
	f.held = status == http.StatusBadRequest || status == http.StatusNotFound
	if !f.held {
		f.release()
	}
}

// Write implements http.ResponseWriter.
func (f *firstAnswer) Write(b []byte) (int, error) {
	if f.status == 0 {
		f.WriteHeader(http.StatusOK)
	}
	if !f.held {
		return f.ResponseWriter.Write(b)
	}
	f.body.Write(b)
	if f.body.Len() > maxHeld {
		f.release()
	}
	return len(b), nil
}

// release sends what was held back, and what comes yet as it comes.
func (f *firstAnswer) release() {
	f.held = false
	header := f.ResponseWriter.Header()
	clear(header)
	maps.Copy(header, f.header)
	f.ResponseWriter.WriteHeader(f.status)
	_, _ = f.ResponseWriter.Write(f.body.Bytes())
}

// FlushError implements what http.ResponseController looks for.
func (f *firstAnswer) FlushError() error {
	if f.held {
		return nil
	}
	return http.NewResponseController(f.ResponseWriter).Flush()
}
