package replica

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

const (
	dialTimeout  = 2 * time.Second
	forwardAgain = 200 * time.Millisecond // after an attempt that did not get there
)

func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: time.Minute,
	}
}

// errNotThere is the answer of a replica that has nothing of what a request is about.
var errNotThere = errors.New("the other replica does not have it")

// Forward has another replica serve a client's request with this body. It returns false,
// and nothing was written, when that one is dead or does not have what the request is
// about. While a replica does not answer and holds its lease, nobody knows: then Forward
// waits. A response that has begun ends when its replica dies.
func (r *Replica) Forward(w http.ResponseWriter, req *http.Request, body []byte, to downstream.Seat) bool {
	return r.forward(w, req, body, to, "")
}

// HandOn is Forward for a request that this replica would serve if it were not about to
// stop; IsHandedOn knows it at the other side.
func (r *Replica) HandOn(w http.ResponseWriter, req *http.Request, body []byte, to downstream.Seat) bool {
	return r.forward(w, req, body, to, "leaving")
}

// header says why a request comes from another replica; nobody else can set it.
const header = "Mcp-Bridge-Passed"

// IsHandedOn reports whether a request that another replica passed was handed on.
func IsHandedOn(req *http.Request) bool { return req.Header.Get(header) != "" }

func (r *Replica) forward(w http.ResponseWriter, req *http.Request, body []byte, to downstream.Seat, why string) bool {
	for {
		m := r.member(req.Context(), to)
		if m == nil {
			return false
		}
		err := r.attempt(w, req, body, m, why)
		switch {
		case err == nil || req.Context().Err() != nil:
			return true
		case errors.Is(err, errNotThere):
			return false
		}
		r.opt.Log.Debug().Err(err).Stringer("replica", to).Msg("a request did not get to another replica")
		wait := time.NewTimer(forwardAgain)
		select {
		case <-wait.C:
		case <-m.alive.Done():
		case <-req.Context().Done():
		}
		wait.Stop()
	}
}

// attempt forwards a request once. On an error nothing was written.
func (r *Replica) attempt(w http.ResponseWriter, req *http.Request, body []byte, m *member, why string) (failed error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(m.alive, cancel)()
	proxy := &httputil.ReverseProxy{
		Transport: r.transport, FlushInterval: -1, // events pass as they come
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "https", m.address
			p.Out.Host = p.In.Host
			p.Out.Header.Del(header)
			if why != "" {
				p.Out.Header.Set(header, why)
			}
			p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			p.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			p.Out.TransferEncoding = nil
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusMisdirectedRequest {
				return errNotThere
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
		ErrorLog:     log.New(io.Discard, "", 0), // the client sees that its stream ended
	}
	proxy.ServeHTTP(w, req.WithContext(ctx))
	return failed
}
