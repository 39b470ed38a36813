// Package replica makes several processes of the bridge that share a store known to
// each other: who is alive, and how a request gets to the one that it belongs to.
//
//	lease (lease.go)      each replica keeps one in the store; without it, it is dead
//	identity (identity.go) TLS between replicas, by keys that only they have
//	forward (forward.go)  a client's request is served by another replica
//
// It knows neither sessions nor calls: package legacy says what is forwarded where, and
// takes over what dead replicas leave.
package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/connlimit"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Options says how a replica is reached, and how it reaches others.
type Options struct {
	Store   store.Store // shared, and sealed
	Keys    []store.Key // of the store; replicas prove themselves with the first one
	Replica downstream.ReplicaID
	Listen  string // HOST:PORT
	Address string // under which the others reach Listen; empty: that itself
	Log     zerolog.Logger
}

// Replica is this process among those that share a store. Its methods are safe for
// concurrent use.
type Replica struct {
	opt       Options
	listener  net.Listener
	server    *http.Server
	transport *http.Transport
	silence   time.Duration

	stop    context.CancelFunc
	ctx     context.Context // ends with Close
	passing context.Context // ends with EndStreams
	endPass context.CancelFunc
	running sync.WaitGroup

	version uint64        // of the lease; of who renews it, like what follows
	lapsed  bool          // it had lapsed, and nobody was told yet
	doubt   chan struct{} // others may have taken calls over

	mu      sync.Mutex
	others  map[downstream.ReplicaID]*member
	grace   time.Time     // until when those whose leases are not there may be about to renew them
	looking chan struct{} // closed when the look under way is over; nil: none is
}

// Open listens for other replicas, takes a lease, and learns who the others are. Serve
// them next.
func Open(ctx context.Context, opt Options) (*Replica, error) {
	id, err := newIdentity(opt.Keys)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("replica.listen: %w", err)
	}
	if opt.Address == "" {
		opt.Address = listener.Addr().String()
	}
	r := &Replica{
		opt: opt, others: map[downstream.ReplicaID]*member{}, doubt: make(chan struct{}, 1), transport: newTransport(id.client()), silence: silence,
		server: &http.Server{ReadHeaderTimeout: readTimeout, TLSConfig: id.server(), ErrorLog: log.New(io.Discard, "", 0)},
	}
	r.listener = connlimit.Listen(r.server, listener, connlimit.Waiting())
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.passing, r.endPass = context.WithCancel(r.ctx)
	if _, err := r.beat(ctx); err != nil {
		r.stop()
		return nil, errors.Join(fmt.Errorf("replica: taking a lease: %w", err), listener.Close())
	}
	return r, nil
}

// readTimeout bounds how long the head of a request from another replica may take.
const readTimeout = 10 * time.Second

// Serve has other replicas' requests served until Close. lapsed is called, twice, when there was no
// lease for a while, and is one again. It may take its time.
func (r *Replica) Serve(handler http.Handler, lapsed func()) {
	r.running.Go(r.live)
	r.running.Go(func() { r.lookAfter(lapsed) })
	r.server.Handler = asItCame(handler)
	r.running.Go(func() {
		if err := r.server.ServeTLS(r.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			r.opt.Log.Error().Err(err).Msg("other replicas cannot reach this one any more")
		}
	})
}

// Address returns where other replicas reach this one.
func (r *Replica) Address() string { return r.opt.Address }

// EndStreams ends the streams of GET that pass through this replica on their way from
// another, so that it can stop: their clients come back for the rest elsewhere. None is
// passed on afterwards.
func (r *Replica) EndStreams() { r.endPass() }

// lastWords is how long responses to other replicas, of which nothing is left to be done,
// may take to get there.
const lastWords = 2 * time.Second

// Close gives the lease back and ends all traffic with other replicas.
func (r *Replica) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		_ = r.server.Close()
	}
	r.stop()
	_ = r.listener.Close()
	r.running.Wait()
	r.transport.CloseIdleConnections()
	r.resign()
}
