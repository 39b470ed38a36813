package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/mcp"
)

// board decides which front serves a request. After a reload the fronts whose
// settings changed stay beside their successors until their last session has
// ended: a request that names a session goes to the front that holds it, any
// other to the present one.
type board struct {
	log   zerolog.Logger
	ready readiness
	table atomic.Pointer[table]

	mu       sync.Mutex // guards what follows, and replacing the table
	present  []*front
	past     []*front
	known    map[*front]map[string]http.Handler // every path at which a front was ever reached
	handover sync.WaitGroup
	stopping context.Context
	stop     context.CancelFunc
}

// table is the state of the board that requests see. It is never changed.
type table struct {
	fronts []*front
	mux    *http.ServeMux
}

// slot is what is found at one path.
type slot struct {
	present entry   // the zero entry: nothing for newcomers
	past    []entry // of fronts that may hold sessions which know this path
}

type entry struct {
	front   *front
	handler http.Handler
}

func newBoard(fronts []*front, log zerolog.Logger) *board {
	b := &board{log: log, known: map[*front]map[string]http.Handler{}}
	b.ready.board = b
	b.stopping, b.stop = context.WithCancel(context.Background())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(fronts)
	return b
}

// fronts returns those that serve newcomers.
func (b *board) fronts() []*front { return b.table.Load().fronts }

// ServeHTTP implements http.Handler.
func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.table.Load().mux.ServeHTTP(w, r) }

// ServeHTTP implements http.Handler.
func (s *slot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := s.present.handler
	if len(s.past) > 0 {
		handler = s.holder(r)
	}
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	handler.ServeHTTP(w, r)
}

// holder returns the handler of the past front that holds the request's session,
// and without one that of the present front.
func (s *slot) holder(r *http.Request) http.Handler {
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		id = r.URL.Query().Get("sessionId") // of HTTP+SSE
	}
	for _, e := range s.past {
		if id != "" && e.front.Holds(id) {
			return e.handler
		}
	}
	return s.present.handler
}

// set makes these the present fronts, with mu held. Sessions go on at the paths
// that they were told of, even where newcomers find something else by now.
func (b *board) set(fronts []*front) {
	b.present = fronts
	slots := map[string]*slot{}
	at := func(path string) *slot {
		if slots[path] == nil {
			slots[path] = &slot{}
		}
		return slots[path]
	}
	for path, e := range routes(fronts) {
		at(path).present = e
		if b.known[e.front] == nil {
			b.known[e.front] = map[string]http.Handler{}
		}
		b.known[e.front][path] = e.handler
	}
	for f, paths := range b.known {
		if !slices.Contains(fronts, f) && !slices.Contains(b.past, f) {
			delete(b.known, f)
			continue
		}
		for path, handler := range paths {
			if s := at(path); s.present.front != f {
				s.past = append(s.past, entry{f, handler})
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /readyz", &b.ready)
	for path, s := range slots {
		mux.Handle(path, s)
	}
	b.table.Store(&table{fronts, mux})
}

// replace makes these the present fronts. Those that are so no more keep their
// sessions for as long as limit.
func (b *board) replace(fronts []*front, limit, drain time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var leaving []*front
	for _, f := range b.present {
		if !slices.Contains(fronts, f) {
			leaving = append(leaving, f)
		}
	}
	b.past = append(b.past, leaving...)
	b.set(fronts)
	for _, f := range leaving {
		b.handover.Go(func() { b.retire(f, limit, drain) })
	}
}

// lookEvery is how often a past front is asked whether its sessions have ended.
const lookEvery = 200 * time.Millisecond

// retire ends a front when its last session has ended or limit has passed.
func (b *board) retire(f *front, limit, drain time.Duration) {
	if !b.outlast(f, limit) {
		return // everything ends now
	}
	if left := f.Busy(); left > 0 {
		f.log.Warn().Int("sessions", left).Msg("timeouts.handover is over: the sessions under the old settings end")
	} else {
		f.log.Info().Msg("the last session under the old settings has ended")
	}
	ctx, cancel := context.WithTimeout(b.stopping, drain)
	defer cancel()
	_ = f.Shutdown(ctx) // what it cut off was said to end
	b.mu.Lock()
	defer b.mu.Unlock()
	b.past = slices.DeleteFunc(b.past, func(p *front) bool { return p == f })
	b.set(b.present)
}

// outlast waits until a past front is idle, but no longer than limit. It reports
// false when the whole board ended meanwhile.
func (b *board) outlast(f *front, limit time.Duration) bool {
	over := time.NewTimer(limit)
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if f.Busy() == 0 {
				return true
			}
		case <-over.C:
			return true
		case <-b.stopping.Done():
			return false
		}
	}
}

// all returns every front and ends the handovers: from now on the caller ends
// the fronts.
func (b *board) all() []*front {
	b.stop()
	b.handover.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Concat(b.present, b.past)
}

// routes gives each front its path and the paths of HTTP+SSE below it; a single
// front has those of the old servers, too, unless one of them is its own path.
func routes(fronts []*front) map[string]entry {
	all := map[string]entry{}
	for _, f := range fronts {
		all[f.settings.Path] = entry{f, f}
	}
	offer := func(endpoint string, f *front) {
		events, messages := config.SSEPaths(endpoint)
		if all[events].front == nil && all[messages].front == nil {
			all[events], all[messages] = entry{f, f.SSE(messages)}, entry{f, f.Messages()}
		}
	}
	for _, f := range fronts {
		offer(f.settings.Path, f)
	}
	if len(fronts) == 1 {
		offer("/", fronts[0])
	}
	return all
}
