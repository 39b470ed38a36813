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
	if empty := w.notification(nil); empty && isListChanged(method) {
		return nil, true
	}
	return w.bytes(), true
}

// A Progress is a progress notification on its way down. Its members alias the
// params, and are valid until AppendTo or Drop, one of which must be called.
type Progress struct {
	Token, Value, Total []byte // raw members; nil: there is none

	w                   *walker
	token, value, total member
}

// Progress goes over the params of a progress notification once, for both what the
// caller must know of it and what Notification would do to it.
func (r Rules) Progress(params []byte) Progress {
	w := newWalker(&r, mcp.NotificationProgress, params)
	p := Progress{w: w}
	w.notification(&p)
	return p
}

// Drop gives up a notification that is not delivered.
func (p *Progress) Drop() { p.w.release() }

// AppendTo appends the params to dst, under another token and, unless they are
// nil, with another value and total.
func (p *Progress) AppendTo(dst, token, value, total []byte) []byte {
	defer p.w.release()
	p.w.replace(p.token, token)
	p.w.replace(p.value, value)
	p.w.replace(p.total, total)
	return p.w.appendTo(dst)
}

// replace puts text in the place of a member's value, unless there is no text or
// no such member.
func (w *walker) replace(m member, text []byte) {
	if text == nil || m.end == 0 {
		return
	}
	from := len(w.text)
	w.text = append(w.text, text...)
	w.putText(m.val, m.end, from)
}

// delivers reports whether notifications of a method reach this client at all.
func (r *Rules) delivers(method string) bool {
	switch method {
	case mcp.NotificationAcknowledged, mcp.NotificationTasks, mcp.NotificationTasksStatus,
		mcp.NotificationCancelled:
		return false
	case mcp.NotificationElicitationComplete: // from draft servers only (I-11)
		return r.Version.AtLeast(mcp.V20251125)
	}
	return true
}

// notification reports whether params end up empty (C-22). It fills p, unless
// that is nil.
func (w *walker) notification(p *Progress) (empty bool) {
	o := enterObject(w.src, skipSpace(w.src, 0))
	for o.next() {
		if p != nil {
			p.note(&o)
		}
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

// note remembers the current member of o, if it is one of a progress notification's.
func (p *Progress) note(o *object) {
	switch string(o.key) {
	case "progressToken":
		p.token, p.Token = o.done(), o.value()
	case "progress":
		p.value, p.Value = o.done(), o.value()
	case "total":
		p.total, p.Total = o.done(), o.value()
	}
}

func isListChanged(method string) bool {
	switch method {
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged,
		mcp.NotificationResourcesListChanged:
		return true
	}
	return false
}
