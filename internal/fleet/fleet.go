// Package fleet is the set of mounts behind one listener: which of them serves a
// request, how they are replaced while sessions go on, what is known of the
// health of their upstreams, and how all of them end.
//
// It knows neither settings nor listeners. A mount never changes: a reload puts a
// new one beside it, and the old one, then retired, ends with its last session.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/mount"
)

// Spec says how to make one mount.
type Spec struct {
	// Path is that of its endpoint.
	Path string
	// Target names its server for people.
	Target string
	// Identity is everything that the mount is made from: while it is deeply equal,
	// the mount need not be made anew.
	Identity any
	// Callers is by what callers without a session are known: what waits for them at one mount may be found by another
	// one, at the same path and of the same server, while it is deeply equal, and credentials end at both or neither.
	Callers any
	// Open makes the mount. Nothing is sent before the first request.
	Open func() (*mount.Mount, error)
	Log  zerolog.Logger
}

// Options say what holds for all mounts.
type Options struct {
	// SSE returns where clients of the endpoint at a path find HTTP+SSE.
	SSE func(endpoint string) (events, messages string)
	// Host reports whether requests may be addressed to a host; nil: to any.
	Host func(host string) bool
	// Degraded reports that not all is served as it should be, though clients are better
	// served than turned away; nil: never.
	Degraded func() bool
	Log      zerolog.Logger
}

// Fleet is an http.Handler for all mounts and for health probes.
type Fleet struct {
	opt     Options
	strange zerolog.Logger // of requests that come to no mount
	ready   readiness
	table   atomic.Pointer[table]

	stopping context.Context // no mount keeps its sessions any longer
	stop     context.CancelFunc
	cutting  context.Context // nor the calls of one that is retired
	cut      context.CancelFunc
	handover errgroup.Group // one for each retired mount; returns when that has ended

	mu      sync.Mutex // guards what follows, and replacing the table
	present []*Member
	retired []*Member
	known   map[*Member]map[string]http.Handler // every path at which a mount was ever reached
}

// Open makes the mounts, or none.
func Open(specs []Spec, opt Options) (*Fleet, error) {
	f := &Fleet{opt: opt, strange: logfield.Seldom(opt.Log), known: map[*Member]map[string]http.Handler{}}
	f.ready.fleet = f
	f.stopping, f.stop = context.WithCancel(context.Background())
	f.cutting, f.cut = context.WithCancel(context.Background())
	change, err := f.Prepare(specs)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setLocked(change.members)
	return f, nil
}

// Members returns those that serve newcomers.
func (f *Fleet) Members() []*Member { return f.table.Load().members }

// Place is a path of mounts, with all that goes on there.
type Place struct {
	*Member           // serves newcomers; of one that was removed: who did last
	Removed bool      // newcomers get 404
	Before  []*Member // those that keep their sessions under earlier settings, the oldest first
}

// All are the members of a place.
func (p *Place) All() []*Member { return append(slices.Clone(p.Before), p.Member) }

// Places are those of the present mounts, in their order, and then those of removed ones that have sessions yet.
func (f *Fleet) Places() (all []Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[string]int{}
	for _, m := range f.present {
		at[m.spec.Path] = len(all)
		all = append(all, Place{Member: m})
	}
	for _, m := range f.retired {
		i, ok := at[m.spec.Path]
		switch {
		case !ok:
			at[m.spec.Path] = len(all)
			all = append(all, Place{Member: m, Removed: true})
		case all[i].Removed:
			all[i].Before, all[i].Member = append(all[i].Before, all[i].Member), m
		default:
			all[i].Before = append(all[i].Before, m)
		}
	}
	return all
}

// ServeHTTP implements http.Handler.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := f.table.Load()
	if e := t.entries[r.URL.Path]; e != nil && r.Method == http.MethodPost { // as the mux would, in a tenth of the time
		e.ServeHTTP(w, r)
		return
	}
	t.mux.ServeHTTP(w, r)
}

// Watch follows the health of all upstreams until the end.
func (f *Fleet) Watch() {
	for _, m := range f.Members() {
		m.Watch()
	}
}

// Change is a set of mounts that is ready to take the place of the present one.
type Change struct {
	fleet   *Fleet
	members []*Member
	fresh   []*Member
}

// Prepare makes the mounts that are not there already. Nothing changes until
// Commit; a Change without one wants Discard.
func (f *Fleet) Prepare(specs []Spec) (*Change, error) {
	var present []*Member
	if t := f.table.Load(); t != nil {
		present = t.members
	}
	c := &Change{fleet: f}
	for _, spec := range specs {
		at := slices.IndexFunc(present, func(m *Member) bool { return reflect.DeepEqual(m.spec.Identity, spec.Identity) })
		if at >= 0 {
			c.members = append(c.members, present[at])
			continue
		}
		m, err := NewMember(spec)
		if err != nil {
			c.Discard()
			return nil, fmt.Errorf("%s: %w", spec.Path, err)
		}
		c.members, c.fresh = append(c.members, m), append(c.fresh, m)
	}
	return c, nil
}

// Discard ends the mounts that were made for nothing.
func (c *Change) Discard() {
	for _, m := range c.fresh {
		m.Close()
	}
}

// Commit makes the change. Mounts that are no more among the present ones keep
// their sessions for as long as handover, and then have drain to end.
func (c *Change) Commit(handover, drain time.Duration) {
	for _, m := range c.fresh {
		c.fleet.inherit(m)
		m.Watch()
	}
	before := c.fleet.Members()
	c.fleet.replace(c.members, handover, drain)
	c.summarize(before)
}

// summarize says which mounts changed.
func (c *Change) summarize(before []*Member) {
	var added, changed, removed, kept []string
	at := func(path string) func(*Member) bool {
		return func(m *Member) bool { return m.spec.Path == path }
	}
	for _, m := range c.members {
		switch {
		case slices.Contains(before, m):
			kept = append(kept, m.spec.Path)
		case slices.ContainsFunc(before, at(m.spec.Path)):
			changed = append(changed, m.spec.Path)
		default:
			added = append(added, m.spec.Path)
		}
	}
	for _, m := range before {
		if !slices.ContainsFunc(c.members, at(m.spec.Path)) {
			removed = append(removed, m.spec.Path)
		}
	}
	event := c.fleet.opt.Log.Info()
	for name, paths := range map[string][]string{"added": added, "changed": changed, "removed": removed, "kept": kept} {
		if len(paths) > 0 {
			event.Strs(name, paths)
		}
	}
	event.Msg("the configuration was reloaded")
}

// Shutdown ends every mount: it refuses what is new and gives running calls until
// ctx to finish. Retired mounts whose time to end has begun keep that, but no longer than ctx.
func (f *Fleet) Shutdown(ctx context.Context) error {
	f.ready.stopping.Store(true)
	defer context.AfterFunc(ctx, f.cut)()
	f.stop()
	var ends errgroup.Group
	ends.Go(f.handover.Wait)
	for _, m := range f.Members() {
		ends.Go(func() error { return m.Shutdown(ctx) })
	}
	err := ends.Wait()
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // which was the end of retired mounts, too
	}
	return err
}

// Close ends every mount at once.
func (f *Fleet) Close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.Shutdown(ended); err != nil && !errors.Is(err, context.Canceled) {
		f.opt.Log.Debug().Err(err).Msg("a mount did not end in order")
	}
}
