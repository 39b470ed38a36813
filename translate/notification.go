package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Notification brings the params of an upstream notification down. ok is false
// for notifications that never reach a legacy client: those about the
// subscription itself (C-17), tasks (C-23) and cancellations, which name
// upstream ids (C-19). out is nil when the notification has no params. The
// progress token and the log level are the caller's business (C-1 to C-8).
func (r Rules) Notification(method string, params []byte) (out []byte, ok bool) {
	if !r.delivers(method) {
		return nil, false
	}
	if rawjson.KindOf(params) != rawjson.Object {
		return nil, true
	}
	w := newWalker(&r, method, params)
	defer w.release()
	if empty := w.notification(); empty && mcp.IsListChanged(method) {
		return nil, true
	}
	out, err := w.bytes()
	return out, err == nil
}

// A Progress is a progress notification on its way down. Its members alias the
// params.
type Progress struct {
	Token, Value, Total []byte // raw members; nil: there is none

	params []byte
	places [3]member // of the members above
	rules  *Rules    // to be applied to the rest; nil: it stays as it is
}

// Progress reads the params of a progress notification.
func (r *Rules) Progress(params []byte) Progress {
	p := Progress{params: params}
	o := enterObject(params, skipSpace(params, 0))
	for o.next() {
		switch string(o.key) {
		case "progressToken":
			p.places[0], p.Token = o.done(), o.value()
		case "progress":
			p.places[1], p.Value = o.done(), o.value()
		case "total":
			p.places[2], p.Total = o.done(), o.value()
		case "message":
			if r.removals().message {
				p.rules = r
			}
		case "_meta":
			p.rules = r
		}
	}
	return p
}

// AppendTo appends to dst what Notification would return, under another token and,
// unless they are nil, with another value and total. There may be thousands of
// these in a row, most of which need nothing but that: they are no walker's work.
func (p *Progress) AppendTo(dst, token, value, total []byte) []byte {
	texts := [3][]byte{token, value, total}
	if p.rules != nil {
		return p.walk(dst, texts)
	}
	at := 0
	for range texts {
		next := -1
		for k, m := range p.places {
			if texts[k] != nil && m.end > 0 && m.val >= at && (next < 0 || m.val < p.places[next].val) {
				next = k
			}
		}
		if next < 0 {
			break
		}
		m := p.places[next]
		dst = append(append(dst, p.params[at:m.val]...), texts[next]...)
		at = m.end
	}
	return append(dst, p.params[at:]...)
}

// walk is AppendTo by the rules for all notifications.
func (p *Progress) walk(dst []byte, texts [3][]byte) []byte {
	w := newWalker(p.rules, mcp.NotificationProgress, p.params)
	defer w.release()
	w.notification()
	for k, m := range p.places {
		if texts[k] != nil && m.end > 0 {
			from := len(w.text)
			w.text = append(w.text, texts[k]...) // of which nobody is told: tokens and numbers are small
			w.putText(m.val, m.end, from)
		}
	}
	dst, _ = w.appendTo(dst)
	return dst
}

// delivers reports whether notifications of a method reach this client at all.
func (r *Rules) delivers(method string) bool {
	switch method {
	case mcp.NotificationAcknowledged, mcp.NotificationTasks, mcp.NotificationTasksStatus,
		mcp.NotificationCancelled:
		return false
	case mcp.NotificationElicitationComplete: // from few servers only (I-11)
		return r.Version.AtLeast(mcp.V20251125)
	}
	return true
}

// notification reports whether params end up empty (C-22).
func (w *walker) notification() (empty bool) {
	o := enterObject(w.src, skipSpace(w.src, 0))
	for o.next() {
		switch string(o.key) {
		case "_meta":
			w.meta(&o)
		case "message":
			if w.cut.message && w.method == mcp.NotificationProgress { // C-5
				w.drop(o.done())
			}
		}
	}
	empty = o.count == len(w.drops)
	if empty && o.count > 0 {
		w.put(0, len(w.src), "{}")
	} else {
		w.prune(0)
	}
	return empty
}
