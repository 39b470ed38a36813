package replica

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/http1"
)

const (
	dialTimeout  = 2 * time.Second
	forwardAgain = 200 * time.Millisecond // after an attempt that did not get there
	silence      = 2 * leaseTTL           // who cannot be reached for so long is not dead, but cut off
)

// How long a connection to another replica may be silent before it is asked whether it
// lives, and how long the answer may take: one that the network has swallowed is not used
// for minutes.
const (
	pingAfter   = time.Second
	pingTimeout = 2 * time.Second
)

// window is how much of a response comes before it is read, in bytes. net/http would take 4 MiB; this
// is charged with what passing a request on costs (package legacy).
const window = 64 << 10

func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		HTTP2:           &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: window},
		TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxResponseHeaderBytes: 2 * http1.MaxHead, // what a server says, and what the bridge adds
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: time.Minute,
	}
}

// errNotThere is the answer of a replica that has nothing of what a request is about.
var errNotThere = errors.New("the other replica does not have it")

// Forward has another replica serve a client's request with this body. It returns false,
// and nothing was written, when that one is dead or does not have what the request is
// about. While a replica does not answer and holds its lease, nobody knows: then Forward
// waits. A response that has begun ends when its replica dies.
func (r *Replica) Forward(w http.ResponseWriter, req *http.Request, body []byte, to downstream.ReplicaID) bool {
	return r.forward(w, req, body, to, "")
}

// HandOn is Forward for a request that this replica would serve if it were not about to
// stop; IsHandedOn knows it at the other side. A POST that got there and was not answered
// is answered 502, since nobody knows what came of it.
func (r *Replica) HandOn(w http.ResponseWriter, req *http.Request, body []byte, to downstream.ReplicaID) bool {
	return r.forward(w, req, body, to, leaving)
}

// ForwardAny is Forward to whichever of the other replicas has what the request is about: those that
// are known are asked, then those that have come since. known is false when nobody has served it,
// and one with a lease could not be asked for longer than a dead one keeps its lease.
func (r *Replica) ForwardAny(w http.ResponseWriter, req *http.Request, body []byte) (served, known bool) {
	return r.any(w, req, body, "")
}

// HandOnAny is HandOn to whichever of the other replicas takes it.
func (r *Replica) HandOnAny(w http.ResponseWriter, req *http.Request, body []byte) bool {
	served, _ := r.any(w, req, body, leaving)
	return served
}

// any asks one after the other. Who cannot be asked keeps nobody from being asked, and is asked
// again, unless it is cut off.
func (r *Replica) any(w http.ResponseWriter, req *http.Request, body []byte, why string) (served, known bool) {
	said := map[downstream.ReplicaID]bool{} // who does not serve it
	until := time.Now().Add(r.silence)
	for looked := false; ; looked = true {
		silent, waits := false, false
		for _, m := range r.members() {
			if said[m.id] {
				continue
			}
			if served, said[m.id] = r.ask(w, req, body, m, why); served {
				return true, true
			}
			silent = silent || !said[m.id]
			waits = waits || !said[m.id] && !m.cutOff()
		}
		if looked && (!waits || time.Now().After(until)) {
			return false, !silent
		}
		if waits {
			pause(req.Context(), r.ctx)
		}
		r.lookOnce(req.Context())
	}
}

// leaving is the reason of a request that is handed on.
const leaving = "leaving"

// header says why a request comes from another replica; nobody else can set it.
const header = "Mcp-Bridge-Passed"

// clientHeader is the address of the client that another replica has a request of: fairness
// among addresses is the same whichever replica serves them.
const clientHeader = "Mcp-Bridge-Client"

// asItCame shows a request that another replica passed as it came to that one.
func asItCame(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from := r.Header.Get(clientHeader); from != "" {
			r.RemoteAddr = from
			r.Header.Del(clientHeader)
		}
		next.ServeHTTP(w, r)
	})
}

// IsHandedOn reports whether a request that another replica passed was handed on.
func IsHandedOn(req *http.Request) bool { return req.Header.Get(header) != "" }

func (r *Replica) forward(w http.ResponseWriter, req *http.Request, body []byte, to downstream.ReplicaID, why string) bool {
	for {
		m := r.member(req.Context(), to)
		if m == nil {
			return false
		}
		if served, known := r.ask(w, req, body, m, why); known {
			return served
		}
		pause(req.Context(), m.alive)
	}
}

// pause waits a moment after an attempt that did not get there.
func pause(request, alive context.Context) {
	wait := time.NewTimer(forwardAgain)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-alive.Done():
	case <-request.Done():
	}
}

// ask has a replica serve a request if that gets there. Whether it would have is not known otherwise.
func (r *Replica) ask(w http.ResponseWriter, req *http.Request, body []byte, m *member, why string) (served, known bool) {
	if r.endsStreams(req) {
		return false, true
	}
	err := r.attempt(w, req, body, m, why)
	if err == nil || errors.Is(err, errNotThere) {
		r.reached(m)
	}
	switch {
	case err == nil:
		return true, true
	case req.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client is gone: no response
	case errors.Is(err, errNotThere), r.endsStreams(req):
		return false, true
	case errors.Is(err, errSent):
		r.opt.Log.Warn().Err(err).Stringer("replica", m.id).Msg("a request was handed on to a replica that was lost with it")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "the replica that served this was lost; whether it was done is unknown\n")
		return true, true
	}
	r.opt.Log.Debug().Err(err).Stringer("replica", m.id).Msg("a request did not get to another replica")
	r.missed(m, err)
	return false, false
}

// endsStreams reports whether a request is one for a stream, and this replica passes none on any more.
func (r *Replica) endsStreams(req *http.Request) bool {
	return req.Method == http.MethodGet && r.passing.Err() != nil
}

// errSent says that a request got to a replica, which did not answer, and must not be
// repeated: it may have begun what may be done only once (D-15).
var errSent = errors.New("no answer from the other replica")

// attempt forwards a request once. On an error nothing was written.
func (r *Replica) attempt(w http.ResponseWriter, req *http.Request, body []byte, m *member, why string) (failed error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(m.alive, cancel)()
	if req.Method == http.MethodGet {
		defer context.AfterFunc(r.passing, cancel)()
	}
	var sent atomic.Bool
	if why != "" && req.Method == http.MethodPost {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	}
	proxy := &httputil.ReverseProxy{
		Transport: r.transport, FlushInterval: -1, // events pass as they come
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "https", m.address
			p.Out.Host = p.In.Host
			p.Out.Header.Del(header)
			p.Out.Header.Set(clientHeader, req.RemoteAddr)
			if why != "" {
				p.Out.Header.Set(header, why)
			}
			p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			p.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			p.Out.TransferEncoding, p.Out.Trailer = nil, nil
			// Of what concerns the client's connection ReverseProxy hands on a wish for another protocol, which HTTP/2 refuses to send.
			p.Out.Header.Del("Connection")
			p.Out.Header.Del("Upgrade")
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusMisdirectedRequest {
				return errNotThere
			}
			if req.Method == http.MethodGet {
				resp.Body = whole{resp.Body}
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if failed = err; sent.Load() && !errors.Is(err, errNotThere) {
				failed = fmt.Errorf("%w: %w", errSent, err)
			}
		},
		ErrorLog: log.New(io.Discard, "", 0), // the client sees that its stream ended
	}
	proxy.ServeHTTP(w, req.WithContext(ctx))
	return failed
}

// whole is the body of a response that its client can come back for: wherever it is cut, it ends
// in good order, and the client's connection with it does not break.
type whole struct{ io.ReadCloser }

func (b whole) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}
