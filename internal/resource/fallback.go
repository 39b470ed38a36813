package resource

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// Clients of 2025-03-26 that find no metadata use these places at the root of the server,
// which to them is the bridge (authorization, "Fallbacks for Servers without Metadata
// Discovery").
const (
	authorizePath = "/authorize"
	tokenPath     = "/token"
	registerPath  = "/register"
)

// Bounds on what is handed on for whoever asks.
const (
	maxForm     = 64 << 10 // bytes of a request
	maxForwards = 32       // at the same time
)

// fallback hands the requests for the places without metadata on to the server. Where
// that has metadata, nobody who reads them comes here.
type fallback struct {
	*relayed
	places *budget.Places // one for each request that is under way
}

func newFallback(s *relayed) *fallback { return &fallback{s, budget.NewPlaces(maxForwards)} }

// routes are the places.
func (f *fallback) routes() map[string]http.Handler {
	return map[string]http.Handler{
		authorizePath: http.HandlerFunc(f.authorize), tokenPath: http.HandlerFunc(f.forward), registerPath: http.HandlerFunc(f.forward),
	}
}

// origin is where the server has the same places, "" when it has metadata instead.
func (f *fallback) origin(r *http.Request) (string, error) {
	document, err := f.document(r.Context(), f.own(r))
	if document != nil || err != nil {
		return "", err
	}
	if meta, err := f.relayed.issuer(r); meta != nil || err != nil {
		return "", err
	}
	return wellknown.Origin(f.Server), nil
}

// authorize sends the browser to the server's own page: what that shows is not to have
// the bridge's origin.
func (f *fallback) authorize(w http.ResponseWriter, r *http.Request) {
	at, ok := f.place(w, r, http.MethodGet)
	if !ok {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", at+"?"+r.URL.RawQuery)
	w.WriteHeader(http.StatusFound)
}

// place returns where the server has what was asked for, or answers why there is no such
// place.
func (f *fallback) place(w http.ResponseWriter, r *http.Request, method string) (string, bool) {
	origin, err := f.origin(r)
	switch {
	case origin == "" || err != nil:
		writeNothing(w, err)
		return "", false
	case r.Method != method:
		w.Header().Set("Allow", method)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return "", false
	}
	return origin + r.URL.Path, true
}

// forward hands a request of a program on, or of a page that may use the endpoint.
func (f *fallback) forward(w http.ResponseWriter, r *http.Request) {
	if !f.Admit(w, r) {
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Headers", "*")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if hop.Opened(r) {
		hop.RefuseOpened(w)
		return
	}
	at, ok := f.place(w, r, http.MethodPost)
	if !ok {
		return
	}
	held := budget.On(f.Memory.Guest(f.Party(r))) // it has no place yet: it may come slowly
	defer held.Release()
	if err := held.Grow(formCost(r.ContentLength)); err != nil {
		refuse(w, "there is no memory for the request at the moment")
		return
	}
	form, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err != nil {
		http.Error(w, "the request is too large, or broke off", http.StatusRequestEntityTooLarge)
		return
	}
	free, _ := f.places.Take(f.Party(r))
	if free == nil {
		refuse(w, "too many sign-ins at the same time")
		return
	}
	defer free()
	f.exchange(w, r, at, form)
}

// formCost is what a request of this length is charged for, negative: unknown. What it is read into
// grows beyond it.
func formCost(length int64) int {
	if length < 0 || length > maxForm {
		length = maxForm
	}
	return 2 * int(length)
}

func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusServiceUnavailable)
}

// exchange asks the server, and hands its answer back.
func (f *fallback) exchange(w http.ResponseWriter, r *http.Request, at string, form []byte) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(form))
	if err != nil {
		writeNothing(w, err) // impossible: the parts of the address are the server's own
		return
	}
	for _, name := range []string{"Content-Type", "Accept", "Authorization"} {
		if value := r.Header.Get(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := f.Servers.Do(req)
	if err != nil {
		http.Error(w, "the server cannot be asked: "+wellknown.Reason(err), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, wellknown.MaxDocument))
	if err != nil {
		http.Error(w, "the server's answer broke off", http.StatusBadGateway)
		return
	}
	for _, name := range []string{"Content-Type", "WWW-Authenticate", "Retry-After"} {
		if value := resp.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	hop.Inert(w.Header(), len(body) > 0)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body) // to a client that may be gone
}
