package legacy

import "net/http"

// unheard is the response to a part of a batch.
type unheard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u *unheard) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}

// Write implements http.ResponseWriter.
func (u *unheard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (u *unheard) WriteHeader(int) {}
