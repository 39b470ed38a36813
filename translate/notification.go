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

// AppendProgress appends to dst what Notification would return for the params of
// a progress notification, with members replaced as edits say. dst must not
// overlap params or edits.
func (r Rules) AppendProgress(dst, params []byte, edits ...rawjson.Edit) []byte {
	w := newWalker(&r, mcp.NotificationProgress, params)
	defer w.release()
	w.notification(edits)
	return w.appendTo(dst)
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

// notification replaces members as edits say and reports whether params end up
// empty (C-22).
func (w *walker) notification(edits []rawjson.Edit) (empty bool) {
	o := enterObject(w.src, skipSpace(w.src, 0))
	for o.next() {
		for _, e := range edits {
			if string(o.key) == e.Name {
				m, from := o.done(), len(w.text)
				w.text = append(w.text, e.Value...)
				w.putText(m.val, m.end, from)
			}
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

func isListChanged(method string) bool {
	switch method {
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged,
		mcp.NotificationResourcesListChanged:
		return true
	}
	return false
}
