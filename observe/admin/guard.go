package admin

import (
	"embed"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Options says what is guarded, and for whom.
type Options struct {
	Token Token
	// TLS says that the listener speaks HTTPS.
	TLS bool
	// Named reports whether a host name is one of this listener; nil: none is but those
	// of the loopback interface.
	Named func(host string) bool
	// Static serves what the pages are made of, below /static/, to everybody: style sheets
	// and modules are loaded without the token, and have nothing to hide. Nil: there is nothing of the kind.
	Static http.Handler
	// Inside serves who may enter.
	Inside http.Handler
}

// Guard lets in who may look.
type Guard struct{ opt Options }

// NewGuard returns the handler of an admin listener.
func NewGuard(opt Options) *Guard { return &Guard{opt} }

//go:embed door
var door embed.FS

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	switch {
	case !g.host(r.Host):
		http.Error(w, "this host name is not one of the admin listener", http.StatusForbidden)
	case !g.sameOrigin(r):
		http.Error(w, "requests of other pages are not taken", http.StatusForbidden)
	case r.URL.Path == "/door/enter":
		g.enter(w, r)
	case strings.HasPrefix(r.URL.Path, "/door/"):
		http.ServeFileFS(w, r, door, strings.TrimPrefix(r.URL.Path, "/"))
	case g.opt.Static != nil && strings.HasPrefix(r.URL.Path, "/static/"):
		g.opt.Static.ServeHTTP(w, r)
	case g.known(r):
		g.opt.Inside.ServeHTTP(w, r)
	default:
		g.stop(w, r)
	}
}

// protect says what browsers may do with a page: load nothing from elsewhere, run
// nothing that stands in it, show it in no frame, tell no other site about it.
func protect(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// host reports whether a request was meant for this listener. What rebinding turns
// against it is a name; an address says itself where it leads. Without TLS only this
// machine is served.
func (g *Guard) host(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.IsLoopback() || g.opt.TLS
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	return g.opt.Named != nil && g.opt.Named(name)
}

// sameOrigin reports whether a request comes from a page of this listener, or from no
// page at all.
func (g *Guard) sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https") == g.opt.TLS
}

// known reports whether a request carries the token, or a pass. Neither is taken from
// a cookie: browsers send those to every port of a host, whoever listens there.
func (g *Guard) known(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return strings.EqualFold(scheme, "Bearer") && (g.opt.Token.is(token) || g.opt.Token.isPass(token, time.Now()))
}

// stop answers who may not enter: a person who opens a page gets the door, which reads
// the fragment of its address, and fetches the page with the pass once it has one.
func (g *Guard) stop(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		page, err := door.ReadFile("door/door.html")
		if err == nil { // it is embedded
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write(page)
			return
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="mcp-bridge admin"`)
	http.Error(w, "the token is missing or wrong: send it as Authorization: Bearer TOKEN, or open the address that the bridge printed at its start",
		http.StatusUnauthorized)
}

// maxEntry bounds the request that brings the token, in bytes.
const maxEntry = 4 << 10

// enter exchanges the token, which is the body, for a pass, which the pages keep where
// only they can read it and send as a bearer.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST the token", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEntry))
	if err != nil || !g.opt.Token.is(strings.TrimSpace(string(body))) {
		http.Error(w, "this is not the token", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, g.opt.Token.pass(time.Now()))
}
