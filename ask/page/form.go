package page

import (
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/internal/budget"
)

// maxForm bounds what a browser may submit, in bytes.
const maxForm = 1 << 20

// Body reads what a browser submits, for a desk elsewhere, and charges held for it. It returns false
// when it cannot be had, and the browser was told.
func (d *Desk) Body(w http.ResponseWriter, r *http.Request, held *budget.Hold) ([]byte, bool) {
	if r.Method != http.MethodPost {
		return nil, true
	}
	if !d.bounds(w, r, held) {
		return nil, false
	}
	form, err := io.ReadAll(r.Body)
	if err != nil {
		d.unread(w)
		return nil, false
	}
	return form, true
}

// bounds charges for what a browser submits, and bounds it; it returns false when the browser was told that
// there is no room for it.
func (d *Desk) bounds(w http.ResponseWriter, r *http.Request, held *budget.Hold) bool {
	length := r.ContentLength
	if length < 0 || length > maxForm {
		length = maxForm
	}
	if err := charge(held, int(length)); err != nil {
		secure(w.Header())
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Connection", "close") // nobody wants to read the rest
		d.say(w, http.StatusServiceUnavailable, "The answer cannot be taken at the moment", "There is too much to do. Go back and try again.")
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return true
}

func (d *Desk) unread(w http.ResponseWriter) {
	secure(w.Header())
	d.say(w, http.StatusBadRequest, "The answer could not be read", "It may be too long. Go back and try again.")
}
