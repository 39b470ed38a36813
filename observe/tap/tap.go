package tap

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/report"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/rawjson"
)

// Hub keeps the latest messages that went by at all mounts, while somebody looks, and
// hands them on while somebody records. When nobody does either it costs one atomic
// load per message.
type Hub struct {
	open     atomic.Bool // somebody looks or records
	sessions atomic.Uint64
	calls    atomic.Uint64
	requests atomic.Uint64 // to servers; their ids on the wire are minted later
	redact   *record.Redactor
	tracer   *traces.Tracer // nil: nothing is traced
	book     *report.Book   // nil: clients are not counted

	catching sync.Mutex // somebody who has begun to look is told of the calls under way

	mu     sync.Mutex
	sink   func(*observe.Event) // nil: nobody records
	ring   []observe.Event      // nil while nobody looks
	seq    uint64               // of the newest event; it stands at seq % len(ring)
	tail   uint64               // events up to this one have no body any more
	held   int                  // by bodies, in bytes
	most   int                  // bytes that bodies may hold
	until  time.Time            // when nobody looks any more
	timer  *time.Timer          // nil: nobody has looked yet
	looked bool                 // somebody looks
	closed bool
	live   map[uint64]live  // conversations by number; nil: nobody wants them
	ends   []observe.Ended  // of calls, the latest; made when one fails or somebody looks
	ended  uint64           // how many there were
	paces  map[string]*pace // by path
}

// live is a conversation that has not ended.
type live struct {
	conv  *conversation
	began time.Time
}

// NewHub returns a hub that decides by redact what of messages may be seen.
func NewHub(redact *record.Redactor) *Hub { return &Hub{redact: redact, most: maxBodies} }

// Tap is a hub's place at one mount.
type Tap struct {
	*Hub
	path   string
	server observe.Server
	pace   *pace
}

// Mount returns the tap of the mount at a path, which stands in front of a server.
func (h *Hub) Mount(path string, server observe.Server) *Tap {
	return &Tap{h, path, server, h.paceOf(path)}
}

// Trace has calls traced from now on. It is to be called before the first one.
func (h *Hub) Trace(tracer *traces.Tracer) { h.tracer = tracer }

// Count has clients counted from now on. It is to be called before the first one.
func (h *Hub) Count(book *report.Book) { h.book = book }

// Limits of what is kept for those who look.
const (
	kept      = 8192     // events
	maxBody   = 1 << 20  // bytes of one message
	maxBodies = 32 << 20 // bytes of all messages
)

// share is the part of what peers may have the bridge hold that goes to messages for those who look: one in so many.
const share = 16

// Within has what is kept be small beside what peers may have the bridge hold, in bytes: nobody is refused because somebody
// looks. It is to be called before the first look.
func (h *Hub) Within(memory int64) { h.most = int(min(maxBodies, memory/share)) }

// Look opens the tap for as long as d from now on.
func (h *Hub) Look(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.until) {
		h.until = until
	}
	if h.closed || h.looked {
		return
	}
	if h.ring == nil {
		h.ring = make([]observe.Event, kept)
	}
	h.looked = true
	h.turnLocked()
	h.timer = time.AfterFunc(d, h.tire)
}

// turnLocked opens or closes the tap as those want who look and record.
func (h *Hub) turnLocked() {
	h.open.Store(h.looked || h.sink != nil)
}

// tire closes the tap when nobody has looked for long enough.
func (h *Hub) tire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := time.Until(h.until); left > 0 && !h.closed {
		h.timer.Reset(left)
		return
	}
	h.looked = false
	h.ring, h.tail, h.held = nil, h.seq, 0
	h.turnLocked()
}

// Record hands every event to sink from now on; nil: to nobody. A sink is called under
// a lock: it neither blocks nor calls back, and lets go of the event.
func (h *Hub) Record(sink func(*observe.Event)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.sink = sink
	h.turnLocked()
}

// Close ends it.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.looked, h.sink = true, false, nil
	h.turnLocked()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// body returns a message as it may be seen; nil: nobody wants it.
func (h *Hub) body(msg *jsonrpc.Message) []byte {
	if !h.open.Load() || len(msg.Params)+len(msg.Result) > maxBody {
		return nil
	}
	return bytes.Clone(h.redact.Message(msg.AppendTo(nil))) // what is left of a large message is small, and not to hold its memory
}

// note keeps an event.
func (t *Tap) note(e observe.Event) {
	e.Mount, e.Method, e.ID = t.path, clip(e.Method), clip(e.ID) // the rest was clipped before
	past := !e.At.IsZero()                                       // known afterwards, and no message
	if !past {
		e.At = time.Now()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	e.Seq = t.seq
	if t.sink != nil && !past {
		t.sink(&e)
	}
	if t.ring == nil {
		return
	}
	t.held += len(e.Body) - len(t.ring[t.seq%kept].Body)
	t.ring[t.seq%kept] = e
	t.trimLocked()
}

// trimLocked forgets what the oldest messages said until the others have room.
func (h *Hub) trimLocked() {
	if h.seq > kept {
		h.tail = max(h.tail, h.seq-kept)
	}
	for h.held > h.most && h.tail < h.seq {
		h.tail++
		e := &h.ring[h.tail%kept]
		h.held -= len(e.Body)
		e.Body = nil
	}
}

// maxText bounds what peers write into an event, in bytes.
const maxText = 64

// clip bounds a peer's text, and lets go of the message that it is a part of.
func clip(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return strings.Clone(rawjson.Readable(text))
}

// Of returns the latest events of a session that are still kept, oldest first.
func (h *Hub) Of(session uint64, most int) []observe.Event {
	return h.latest(most, func(e *observe.Event) bool { return e.Session == session })
}

// After returns the latest events that came after number seq, oldest first.
func (h *Hub) After(seq uint64, most int) []observe.Event {
	return h.latest(most, func(e *observe.Event) bool { return e.Seq > seq })
}

func (h *Hub) latest(most int, wanted func(*observe.Event) bool) []observe.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []observe.Event
	for back := uint64(0); h.ring != nil && back < min(h.seq, kept) && len(found) < most; back++ {
		if e := &h.ring[(h.seq-back)%kept]; e.Seq > 0 && wanted(e) {
			found = append(found, *e)
		}
	}
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found
}

// Track has the hub know which conversations are open, for transports that keep no list
// of their own. It is to be called before the first one.
func (h *Hub) Track() { h.live = map[uint64]live{} }

// Conversations tells what there is to see of each that is open, over a transport.
func (h *Hub) Conversations(transport observe.Transport) []observe.Sight {
	h.mu.Lock()
	open := slices.SortedFunc(maps.Values(h.live), func(a, b live) int { return a.began.Compare(b.began) })
	h.mu.Unlock()
	var seen []observe.Sight
	for _, l := range open {
		seen = append(seen, observe.Sight{ID: transport.String(), Transport: transport, Began: l.began, Conversation: l.conv.Look()})
	}
	return seen
}

// enter and leave keep the list of conversations.
func (h *Hub) enter(c *conversation) *conversation {
	if h.live != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.live[c.number] = live{c, time.Now()}
	}
	return c
}

func (h *Hub) leave(c *conversation) {
	if h.live != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.live, c.number)
	}
}
