// Package resource is the bridge as a protected resource of OAuth (RFC 9728): its
// metadata at well-known paths of its own, the challenges that lead there, and
// where clients' tokens end here, their validation.
//
// It owns under which address clients know an endpoint, and what they are told
// about signing in there. It sends no MCP messages and gets no tokens: clients do
// that, or package authorize.
package resource

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/bridge/internal/wellknown"
)

// Resource is one endpoint as OAuth sees it.
type Resource struct {
	public string // the address of the endpoint for clients; "": as they say in Host
	path   string // of the endpoint here
	source source
}

// source says what there is to know about signing in.
type source interface {
	// describe returns the metadata of the resource that clients know as own; nil when
	// there are none.
	describe(r *http.Request, own string) (map[string]json.RawMessage, error)
	// issuer returns the metadata of the first authorization server; nil when there are
	// none.
	issuer(r *http.Request) (json.RawMessage, error)
	// close ends unused connections.
	close()
}

// Close frees connections that are not in use.
func (s *Resource) Close() { s.source.close() }

// address is how clients know what is served at a path here, which belongs to the
// endpoint.
func (s *Resource) address(r *http.Request, path string) string {
	if s.public == "" {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		return scheme + r.Host + path
	}
	below, isBelow := strings.CutPrefix(path, s.path)
	if isBelow && s.path != "/" {
		return s.public + below
	}
	return wellknown.Origin(s.public) + path
}

// PublicAddress completes what is configured as the address of the endpoint at a path:
// without a path of its own it is that of a whole listener. "" stays "".
func PublicAddress(public, path string) string {
	u, err := url.Parse(public)
	if err != nil || public == "" {
		return ""
	}
	if strings.Trim(u.Path, "/") == "" {
		return wellknown.Origin(public) + strings.TrimSuffix(path, "/")
	}
	return strings.TrimSuffix(public, "/")
}

// metadataAddress is where the metadata of an address are (RFC 9728, 3.1).
func metadataAddress(address string) string {
	origin := wellknown.Origin(address)
	return origin + wellknown.Resource + strings.TrimSuffix(strings.TrimPrefix(address, origin), "/")
}

// Routes returns what is served besides the endpoint, by path, when clients reach it
// at those paths here. The documents of a whole origin, which old clients look for,
// are those of the only endpoint.
func (s *Resource) Routes(paths []string, only bool) map[string]http.Handler {
	routes := map[string]http.Handler{}
	for _, path := range paths {
		document := s.metadata(path)
		for _, at := range []string{path, s.publicPath(path)} {
			at = strings.TrimSuffix(at, "/")
			routes[wellknown.Resource+at] = document
			routes[wellknown.Issuer+at] = http.HandlerFunc(s.serveIssuer)
		}
	}
	if only {
		routes[wellknown.Resource] = s.metadata(s.path)
		routes[wellknown.Issuer] = http.HandlerFunc(s.serveIssuer)
		if relayed, ok := s.source.(*relayed); ok {
			maps.Copy(routes, newFallback(relayed).routes())
		}
	}
	return routes
}

// publicPath is the path under which clients know a path here: a proxy may change it.
func (s *Resource) publicPath(path string) string {
	if s.public == "" {
		return path
	}
	u, err := url.Parse(s.address(nil, path))
	if err != nil {
		return path
	}
	return u.Path
}

// metadata serves those of what is at a path.
func (s *Resource) metadata(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := s.address(r, path)
		document, err := s.source.describe(r, own)
		if document == nil || err != nil {
			writeNothing(w, err)
			return
		}
		writeDocument(w, r, document)
	})
}

// serveIssuer serves the metadata of the authorization server, which clients of
// 2025-03-26 look for at the server's own origin (H.3).
func (s *Resource) serveIssuer(w http.ResponseWriter, r *http.Request) {
	document, err := s.source.issuer(r)
	if document == nil || err != nil {
		writeNothing(w, err)
		return
	}
	writeDocument(w, r, document)
}

// writeDocument answers pages of any origin: nothing in it is a secret.
func writeDocument(w http.ResponseWriter, r *http.Request, document any) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document) // to a client that may be gone
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// writeNothing says that there is no document, or that it cannot be had at present.
func writeNothing(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	http.Error(w, "there are no such metadata", http.StatusNotFound)
}

// with returns a document with another member.
func with(document map[string]json.RawMessage, name string, value any) map[string]json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return document // impossible: these are texts and lists of them
	}
	out := maps.Clone(document)
	out[name] = text
	return out
}
