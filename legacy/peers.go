package legacy

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
)

// Peers are the other replicas that share the store.
type Peers interface {
	// Forward has another replica serve a request with this body. It returns false, and
	// nothing was written, when that replica is gone or has nothing of what the request
	// is about. It waits until it knows.
	Forward(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool
	// HandOn is Forward for a request that any replica can serve.
	HandOn(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool
	// ForwardAny is Forward to whichever has what the request is about. known is false when
	// nobody served it, and somebody could not be asked.
	ForwardAny(w http.ResponseWriter, r *http.Request, body []byte) (served, known bool)
	// HandOnAny is HandOn to whichever takes it.
	HandOnAny(w http.ResponseWriter, r *http.Request, body []byte) bool
	// Others returns the replicas that are known to be alive, without this one.
	Others() []downstream.ReplicaID
	// Alone reports whether there are none, after a look whether one has come.
	Alone(context.Context) bool
}

// nobody is Peers without any.
type nobody struct{}

func (nobody) Forward(http.ResponseWriter, *http.Request, []byte, downstream.ReplicaID) bool {
	return false
}

func (nobody) HandOn(http.ResponseWriter, *http.Request, []byte, downstream.ReplicaID) bool {
	return false
}

func (nobody) ForwardAny(http.ResponseWriter, *http.Request, []byte) (served, known bool) {
	return false, true
}

func (nobody) HandOnAny(http.ResponseWriter, *http.Request, []byte) bool { return false }

func (nobody) Others() []downstream.ReplicaID { return nil }

func (nobody) Alone(context.Context) bool { return true }

// charged are Peers to whom a request is passed on for what that costs, for as long as it takes.
type charged struct {
	Peers
	admission *admission
}

// Forward implements Peers.
func (c charged) Forward(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool {
	return c.pass(w, r, func() bool { return c.Peers.Forward(w, r, body, to) })
}

// HandOn implements Peers.
func (c charged) HandOn(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool {
	return c.pass(w, r, func() bool { return c.Peers.HandOn(w, r, body, to) })
}

// ForwardAny implements Peers.
func (c charged) ForwardAny(w http.ResponseWriter, r *http.Request, body []byte) (served, known bool) {
	served = c.pass(w, r, func() (over bool) {
		over, known = c.Peers.ForwardAny(w, r, body)
		return over
	})
	return served, known
}

// HandOnAny implements Peers.
func (c charged) HandOnAny(w http.ResponseWriter, r *http.Request, body []byte) bool {
	return c.pass(w, r, func() bool { return c.Peers.HandOnAny(w, r, body) })
}

// pass refuses a request for which there is no memory; what is no stream is lent it.
func (c charged) pass(w http.ResponseWriter, r *http.Request, on func() bool) bool {
	hold, refused := c.admission.handsOn(w, r, "", r.Method != http.MethodGet)
	if refused {
		return true
	}
	defer hold.Release()
	return on()
}

// passed says why a request comes from another replica.
type passed uint8

const (
	forwarded passed = iota + 1 // since it is about a call that is here
	handedOn                    // since that one is about to stop
)

type passedKey struct{}

// Forwarded marks a request that another replica has forwarded, HandedOn one that another
// replica would have served itself if it were not about to stop.
func Forwarded(r *http.Request) *http.Request { return mark(r, forwarded) }

// HandedOn is described with Forwarded.
func HandedOn(r *http.Request) *http.Request { return mark(r, handedOn) }

func mark(r *http.Request, why passed) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), passedKey{}, why))
}

func isForwarded(r *http.Request) bool { return r.Context().Value(passedKey{}) == forwarded }

// elsewhere has a request served by the replica that it needs, and reports whether it was answered.
func (rs *replicas) elsewhere(w http.ResponseWriter, r *http.Request, body []byte, s *session.Session, msg *jsonrpc.Message) bool {
	if home := downstream.HomeOfTask(msg); home != 0 { // whose end its client is told of here
		return home != rs.opt.Replica && !isForwarded(r) && rs.opt.Peers.Forward(w, r, body, home)
	}
	return rs.rejoin(w, r, body, s, msg)
}

// rejoin has a call that waits for the same one to be made again go on where it waits, and reports
// whether the request was answered. Who gets it there need not find one: it is a call like any other.
func (rs *replicas) rejoin(w http.ResponseWriter, r *http.Request, body []byte, s *session.Session, msg *jsonrpc.Message) bool {
	at := s.WaitsAt(msg, r.Header)
	if at == 0 || at == rs.opt.Replica || r.Context().Value(passedKey{}) != nil {
		return false
	}
	return rs.opt.Peers.HandOn(w, r, body, at)
}
