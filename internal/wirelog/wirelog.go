// Package wirelog records what passes over the HTTP hops of a bridge: every
// request with the headers that matter, every JSON body and every event, in
// the order in which a peer could have seen them. The demo shows such a record
// and the golden transcripts are made of it. It owns no translation and
// changes nothing that it records.
package wirelog

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// Hop names one side of the bridge.
type Hop int

// The two hops.
const (
	Downstream Hop = iota // legacy client and bridge
	Upstream              // bridge and modern server
)

// Kind says what an Entry records.
type Kind int

// The kinds of entries.
const (
	Request   Kind = iota // an HTTP request and its body; its status is filled in later
	Body                  // a JSON response body
	Event                 // one server-sent event that carries data
	Priming               // an event with an id and no data
	Abandoned             // the peer closed the response stream before it ended
)

// Entry is one message on the wire.
type Entry struct {
	Hop      Hop
	Kind     Kind
	Exchange int         // number of the HTTP exchange, counted over both hops from 1
	Method   string      // HTTP method; set on every entry of the exchange
	Header   http.Header // request headers, for Request only
	Status   int         // response status; 0 while unknown
	Stream   bool        // the response is an event stream
	Data     []byte      // JSON text as it stood on the wire; nil when there was none
	At       time.Time
}

// Recorder collects entries of both hops. The zero value is ready for use; all
// methods are safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	entries  []Entry
	exchange int
	changed  chan struct{}

	// Notify, when set before the first request, is called with every new
	// entry, one at a time and in order, while the peer waits. It must not call
	// the Recorder.
	Notify func(Entry)
	// Limit bounds the entries kept; the oldest go first. Zero means 10000.
	Limit int
}

// Entries returns a copy of what was recorded so far.
func (r *Recorder) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Entry(nil), r.entries...)
}

// Changed returns a channel that is closed by the next entry or status, so that
// a test can wait for the wire instead of sleeping.
func (r *Recorder) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

func (r *Recorder) begin() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchange++
	return r.exchange
}

func (r *Recorder) add(e Entry) {
	e.At = time.Now()
	e.Data = bytes.Clone(e.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	limit := r.Limit
	if limit <= 0 {
		limit = 10000
	}
	if len(r.entries) >= limit {
		r.entries = append(r.entries[:0:0], r.entries[len(r.entries)-limit+1:]...)
	}
	r.entries = append(r.entries, e)
	r.signal()
	if r.Notify != nil {
		r.Notify(e)
	}
}

// answered notes the status of an exchange on its request, where a reader looks
// for it: the empty 202 of an answer races with what the answer sets off.
func (r *Recorder) answered(exchange, status int, stream bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.entries) - 1; i >= 0; i-- {
		e := &r.entries[i]
		if e.Exchange == exchange && e.Kind == Request {
			e.Status, e.Stream = status, stream
			break
		}
	}
	r.signal()
}

func (r *Recorder) signal() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}
