package authorize

import (
	"context"
	_ "embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/singleflight"
)

// entrance is where the browser comes back to.
type entrance struct {
	redirect  string   // the address that it is sent to
	redirects []string // all that may be used for the server
	came      chan error
	listeners []net.Listener
	http      *http.Server
	under     singleflight.Group // of answers: a page that is loaded twice ends alike
}

const (
	firstPort  = 20000 // of those that are chosen by hash
	portCount  = 20000
	candidates = 4
)

// ports are those on which the browser may come back for a server: always the
// same ones, since they are registered, and several, since one may be taken.
func ports(server string) []int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(server)) // never fails
	base := int(h.Sum32() % portCount)
	var list []int
	for i := range candidates {
		list = append(list, firstPort+(base+i*4001)%portCount)
	}
	return list
}

const callbackPath = "/callback"

// callbacks lists the addresses for a server, the preferred one first.
func (o *Options) callbacks() []string {
	if o.Callback != "" {
		return []string{o.Callback}
	}
	var all []string
	for _, port := range ports(o.Server) {
		all = append(all, "http://127.0.0.1:"+strconv.Itoa(port)+callbackPath)
	}
	return all
}

// listen opens the entrance: at the address that a tab which is open already will
// be sent to, if there is one, else at the first that is free.
func (a *Agent) listen(ctx context.Context, at *place) (*entrance, error) {
	all := a.opt.callbacks()
	first := all
	if p := a.store.newestPending(); p != nil && p.Issuer == at.meta.Issuer && covers(all, []string{p.Redirect}) {
		first = union([]string{p.Redirect}, all)
	}
	for _, address := range first {
		listeners, err := open(ctx, address)
		if err != nil {
			a.opt.Log.Debug().Err(err).Str("callback", address).Msg("the callback cannot be used")
			continue
		}
		e := &entrance{redirect: address, redirects: all, listeners: listeners, came: make(chan error, 1)}
		e.serve(a)
		return e, nil
	}
	if a.opt.Callback != "" {
		return nil, failf(nil, "the address %s of auth.callback is in use by another program; end that, or choose another port that is registered for the bridge", a.opt.Callback)
	}
	return nil, failf(nil, "the ports to which your browser would come back (%v) are all in use; end what uses one, or set auth.callback", ports(a.opt.Server))
}

// open listens at the address of a callback; for localhost on both of the
// addresses that this name has.
func open(ctx context.Context, address string) ([]net.Listener, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	hosts := []string{u.Hostname()}
	if u.Hostname() == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var listeners []net.Listener
	var config net.ListenConfig
	for i, host := range hosts {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, u.Port()))
		if err != nil && i == 0 {
			return nil, err
		}
		if err == nil { // a machine may be without IPv6
			listeners = append(listeners, l)
		}
	}
	return listeners, nil
}

// serve answers the browser until the entrance is closed.
func (e *entrance) serve(a *Agent) {
	u, err := url.Parse(e.redirect)
	if err != nil {
		return // impossible: open has parsed it
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+u.EscapedPath(), func(w http.ResponseWriter, r *http.Request) { e.answer(a, w, r) })
	e.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	for _, l := range e.listeners {
		a.work.Go(func() { _ = e.http.Serve(l) }) // until close
	}
}

// close ends the entrance when the page that tells the end has been sent.
func (e *entrance) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if e.http.Shutdown(ctx) != nil {
		_ = e.http.Close()
	}
}

func (e *entrance) answer(a *Agent, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), RequestTimeout)
	defer cancel()
	_, err, _ := e.under.Do(r.URL.RawQuery, func() (any, error) { return a.complete(ctx, r.URL.Query()) })
	writePage(w, a.opt.host(), err)
	if err == error(errForeign) {
		return
	}
	select {
	case e.came <- err:
	default: // it was here before
	}
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// writePage closes the story for the person. The address of the page holds a
// code: it is used up, and is kept from whatever the page would lead to.
func writePage(w http.ResponseWriter, server string, err error) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Connection", "close")
	shown := struct {
		Server, Problem string
	}{Server: server}
	if err != nil {
		shown.Problem = err.Error()
		w.WriteHeader(http.StatusBadRequest)
	}
	if err := page.Execute(w, shown); err != nil {
		_, _ = fmt.Fprintln(w, "The page cannot be shown.") // to a browser that has left
	}
}
