package legacy

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sse"
)

// openSSE serves one HTTP+SSE connection, which is the session (E-27).
func (h connections) openSSE(w http.ResponseWriter, r *http.Request, messages string) {
	if !web.AcceptOf(r.Header).Has(web.AcceptSSE) {
		web.WriteNotAcceptable(w, "text/event-stream")
		return
	}
	caller := h.sessions.Caller(r)
	account, err := session.OpenAccount(h.opt.Memory, caller.Tenant, web.HeadCost(r.Header))
	if err != nil {
		h.admission.writeShort(w, r, nil, "", err)
		return
	}
	s := &sseWriter{w: w, rc: http.NewResponseController(w), timeout: h.opt.WriteTimeout}
	id := sessions.NewID()
	c := channel.New(r.Context(), h.channelOptions(r, id, account), h.backend, caller, observe.HTTPSSE, s.message)
	c.WatchCredentials(h.opt.term(caller.Authorization))
	if !h.channels.Add(id, c) {
		c.Close(sessions.Closed)
		h.refusals.refuseConnection(w)
		return
	}
	defer h.channels.Remove(id)
	defer c.Leave()
	if c.Write(func() error { return s.open(messages + "?sessionId=" + id) }) != nil {
		return
	}
	defer c.KeepAlive(h.pings, h.silence(), s.comment)()
	select {
	case <-c.Gone():
	case <-r.Context().Done():
	}
}

func (h connections) postSSE(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("sessionId")
	c := h.channels.Get(id)
	if c == nil || !session.SamePrincipal(c.Principal(), h.sessions.Principal(r)) { // E-30
		h.refusals.refuseUnknown(w, id, "")
		return
	}
	if !web.IsJSON(r.Header) {
		web.WriteNotJSON(w)
		return
	}
	from := sender{hold: budget.On(c.Account())}
	defer from.hold.Release() // what it begins is charged by itself
	body, ok := h.admission.body(w, r, &from)
	if !ok {
		return
	}
	if id, err := c.Take(body, web.Header(r.Header, "Authorization")); err != nil {
		web.WriteParseError(w, id, err) // older versions have no place for it on the stream (E-32)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// maxKept is the largest write buffer that a connection keeps between messages.
const maxKept = 64 << 10

// sseWriter writes the event stream of HTTP+SSE: no ids, no priming (E-27). Its
// methods are called with the channel's lock held.
type sseWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	buf     []byte
}

// open sends the head and the endpoint event.
func (s *sseWriter) open(endpoint string) error {
	web.BeginStream(s.w)
	return s.flush([]byte("event: endpoint\ndata: "+endpoint+"\n\n"), s.timeout)
}

func (s *sseWriter) message(msg []byte) error {
	s.buf = sse.AppendEvent(s.buf[:0], "", msg)
	err := s.flush(s.buf, s.timeout)
	if cap(s.buf) > maxKept {
		s.buf = nil
	}
	return err
}

func (s *sseWriter) comment() error { return s.flush(web.KeepAlive, web.PingTimeout) }

func (s *sseWriter) flush(b []byte, timeout time.Duration) error {
	for part := range slices.Chunk(b, web.WritePart) {
		_ = s.rc.SetWriteDeadline(time.Now().Add(timeout))
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return s.rc.Flush()
}
