package legacy

import (
	"maps"
	"net/http"
)

// unheard is the response to a part of a batch.
type unheard struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (u *unheard) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}

// Write implements http.ResponseWriter.
func (u *unheard) Write(b []byte) (int, error) {
	u.body = append(u.body, b...)
	return len(b), nil
}

// WriteHeader implements http.ResponseWriter.
func (u *unheard) WriteHeader(status int) { u.status = status }

// tell makes it the response to the whole batch.
func (u *unheard) tell(w http.ResponseWriter) {
	maps.Copy(w.Header(), u.header)
	w.WriteHeader(u.status)
	_, _ = w.Write(u.body)
}
