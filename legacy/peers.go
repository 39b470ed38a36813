package legacy

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
)

// Peers are the other replicas that share the store.
type Peers interface {
	// Forward has another replica serve a request with this body. It returns false, and
	// nothing was written, when that replica is gone or has nothing of what the request
	// is about. It waits until it knows.
	Forward(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool
	// HandOn is Forward for a request that any replica can serve.
	HandOn(w http.ResponseWriter, r *http.Request, body []byte, to downstream.ReplicaID) bool
	// Others returns the replicas that are known to be alive, without this one; Everybody
	// looks whether there are newer ones.
	Others() []downstream.ReplicaID
	Everybody(context.Context) []downstream.ReplicaID
}

// nobody is Peers without any.
type nobody struct{}

func (nobody) Forward(http.ResponseWriter, *http.Request, []byte, downstream.ReplicaID) bool {
	return false
}

func (nobody) HandOn(http.ResponseWriter, *http.Request, []byte, downstream.ReplicaID) bool {
	return false
}

func (nobody) Others() []downstream.ReplicaID { return nil }

func (nobody) Everybody(context.Context) []downstream.ReplicaID { return nil }

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
