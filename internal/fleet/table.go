package fleet

import (
	"net/http"
	"slices"

	"github.com/mcpbridge/bridge/mcp"
)

// table is the state of the fleet that requests see. It is never changed.
type table struct {
	members []*Member
	entries map[string]*entry // by path
	mux     *http.ServeMux    // to these, and to health probes
}

// entry is what is found at one path. After a reload a request that names a
// session goes to the mount that holds it, any other to the present one.
type entry struct {
	present door             // the zero door: nothing for newcomers
	nothing http.HandlerFunc // serves them then
	retired []door           // to mounts that may hold sessions which know this path
}

// door is one way into a mount.
type door struct {
	member  *Member
	handler http.Handler
}

// ServeHTTP implements http.Handler.
func (e *entry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := e.present.handler
	if len(e.retired) > 0 {
		handler = e.holder(r)
	}
	if handler == nil {
		handler = e.nothing
	}
	handler.ServeHTTP(w, r)
}

// holder returns the handler of the retired mount that holds the request's
// session, and without one that of the present mount.
func (e *entry) holder(r *http.Request) http.Handler {
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		id = r.URL.Query().Get("sessionId") // of HTTP+SSE
	}
	for _, d := range e.retired {
		if id != "" && d.member.Holds(id) {
			return d.handler
		}
	}
	if d := e.keeper(r); d.member != nil {
		return d.handler
	}
	return e.present.handler
}

// keeper returns the door to the retired mount whose session has left memory, unless the present one
// can go on with it under the new settings.
func (e *entry) keeper(r *http.Request) door {
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" || e.present.member != nil && e.present.member.Holds(id) {
		return door{}
	}
	for _, d := range e.retired {
		if d.member.recalls(e.present.member, r, id) {
			return d
		}
	}
	return door{}
}

// setLocked makes these the present mounts. Sessions go on at the paths that they
// were told of, even where newcomers find something else by now.
func (f *Fleet) setLocked(members []*Member) {
	f.present = members
	entries := map[string]*entry{}
	at := func(path string) *entry {
		if entries[path] == nil {
			entries[path] = &entry{nothing: f.nothing}
		}
		return entries[path]
	}
	for path, d := range f.routes(members) {
		at(path).present = d
		if f.known[d.member] == nil {
			f.known[d.member] = map[string]http.Handler{}
		}
		f.known[d.member][path] = d.handler
	}
	for m, paths := range f.known {
		if !slices.Contains(members, m) && !slices.Contains(f.retired, m) {
			delete(f.known, m)
			continue
		}
		for path, handler := range paths {
			if e := at(path); e.present.member != m {
				e.retired = append(e.retired, door{m, handler})
			}
		}
	}
	f.table.Store(&table{members, entries, f.newMux(entries)})
}

func (f *Fleet) newMux(entries map[string]*entry) *http.ServeMux {
	mux := http.NewServeMux()
	for path, probe := range map[string]http.HandlerFunc{"/healthz": healthy, "/readyz": f.ready.ServeHTTP} {
		mux.HandleFunc("GET "+path, f.guarded(probe))
		mux.HandleFunc(path, refuseMethod)
	}
	for path, e := range entries {
		mux.Handle(path, e)
	}
	if entries["/"] == nil { // which is for all other paths
		mux.HandleFunc("/", f.guarded(f.nothing))
	}
	return mux
}

// routes gives each mount its path and the paths of HTTP+SSE below it; a single
// mount has those of the old servers, too, unless one of them is its own path.
func (f *Fleet) routes(members []*Member) map[string]door {
	all := map[string]door{}
	for _, m := range members {
		all[m.spec.Path] = door{m, m}
	}
	offer := func(endpoint string, m *Member) {
		events, messages := f.opt.SSE(endpoint)
		if all[events].member == nil && all[messages].member == nil {
			all[events], all[messages] = door{m, m.SSE(messages)}, door{m, m.Messages()}
		}
	}
	for _, m := range members {
		offer(m.spec.Path, m)
	}
	if len(members) == 1 {
		offer("/", members[0])
	}
	f.offerMetadata(members, all)
	return all
}

// offerMetadata adds what clients look for that want to sign in.
func (f *Fleet) offerMetadata(members []*Member, all map[string]door) {
	paths := map[*Member][]string{}
	for path, d := range all {
		paths[d.member] = append(paths[d.member], path)
	}
	for _, m := range members {
		for path, handler := range m.Routes(paths[m], len(members) == 1) {
			if _, taken := all[path]; !taken {
				all[path] = door{m, f.guarded(handler.ServeHTTP)}
			}
		}
	}
}
