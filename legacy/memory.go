package legacy

import (
	"errors"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// sessionCost is what a session is charged for besides what its client says of itself,
// in bytes: its tables and timers.
const sessionCost = 8 << 10

// openAccount opens the account of a new session whose client said so much of itself,
// or says why there is no room for it.
func (o *Options) openAccount(principal string, declared int) (*budget.Account, error) {
	account, err := o.Memory.Open(principal)
	if err != nil {
		return nil, err
	}
	if err := account.Take(sessionCost + declared); err != nil {
		account.Close()
		return nil, err
	}
	return account, nil
}

// accountOf returns what a request is charged to.
func (h *HTTP) accountOf(s *session, r *http.Request) *budget.Account {
	switch {
	case h.opt.Memory == nil:
		return nil
	case s != nil:
		return s.account
	}
	return h.opt.Memory.Guest(h.principal(r))
}

// charge charges for a body of this length, negative: unknown. A small one of a session
// may be the answer that ends what the session holds, so it is lent.
func (s *sender) charge(length int64) error {
	size := requestCost + int(max(length, 0))
	if s.lent = s.session != nil && length >= 0 && length <= unproven; s.lent {
		return s.hold.Borrow(size)
	}
	return s.hold.Grow(size)
}

// owes refuses a request that was lent memory for its body, when its session holds too
// much.
func (h *HTTP) owes(w http.ResponseWriter, r *http.Request, from *sender, id jsonrpc.ID) bool {
	if !from.lent {
		return false
	}
	err := from.hold.Judge()
	if err != nil {
		h.guard.Refused(observe.ShortOfMemory)
		h.writeShort(w, r, from.session, id, err)
	}
	return err != nil
}

// meter charges a body of unknown length while it is read.
type meter struct {
	io.Reader
	hold budget.Hold
}

// readMetered reads to the end, and charges what it reads to hold.
func readMetered(r io.Reader, hold *budget.Hold) ([]byte, error) {
	m := &meter{r, hold.Move()}
	body, err := io.ReadAll(m)
	*hold = m.hold.Move()
	return body, err
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if short := m.hold.Grow(n); short != nil {
		return 0, short
	}
	return n, err
}

// writeShort refuses a request for want of memory: 429 to who holds too much, 503 when
// nobody else could be served either. s is nil without a session.
func (h *HTTP) writeShort(w http.ResponseWriter, r *http.Request, s *session, id jsonrpc.ID, err error) {
	status, again := http.StatusServiceUnavailable, fullAgain
	if errors.Is(err, budget.ErrShare) {
		status, again = http.StatusTooManyRequests, busyAgain
	}
	line := h.notices.short.Warn().Int64("used", h.opt.Memory.Used()).Int64("limit", h.opt.Memory.Limit())
	if s != nil {
		line = line.Str(logfield.SessionID, logfield.Short(s.rec.ID))
	}
	line.Msg("short of memory (limits.memory); a request was refused")
	w.Header().Set("Retry-After", again)
	if r.ContentLength < 0 || r.ContentLength > unproven {
		w.Header().Set("Connection", "close") // nobody wants to read the rest
	}
	web.WriteError(w, status, id, jsonrpc.CodeInternal, err.Error())
}
