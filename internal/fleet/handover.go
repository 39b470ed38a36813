package fleet

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"
)

// replace makes these the present mounts. Those that are so no more are retired:
// they keep their sessions for as long as limit.
func (f *Fleet) replace(members []*Member, limit, drain time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var leaving []*Member
	for _, m := range f.present {
		if !slices.Contains(members, m) {
			leaving = append(leaving, m)
		}
	}
	for _, m := range leaving {
		m.left = time.Now()
	}
	f.retired = append(f.retired, leaving...)
	f.setLocked(members)
	f.bequeathLocked()
	for _, m := range leaving {
		f.handover.Go(func() error { return f.retire(m, limit, drain) })
	}
}

// inherit has a mount that is about to be a present one find what waits without a session at those before it.
func (f *Fleet) inherit(m *Member) {
	f.mu.Lock()
	before := slices.Concat(f.retired, f.present)
	f.mu.Unlock()
	for _, b := range slices.Backward(before) {
		if b.goesOnAt(m) {
			m.Succeed(b.Mount) // and those whose place that one took
			return
		}
	}
}

// bequeathLocked has sessions of a server that are relayed to it go on at the present mount where that is the same
// server's: nothing of them is the old one's. Those of another one keep their mount.
func (f *Fleet) bequeathLocked() {
	for _, p := range f.present {
		for _, m := range f.retired {
			if m.goesOnAt(p) {
				m.Bequeath(p.Mount)
			}
		}
	}
}

// goesOnAt reports whether another mount can go on with what clients have here: it is the same server's, at the
// same path, and knows who calls in the same way. Whether credentials end at it is told by the mounts: more than one
// setting does that.
func (m *Member) goesOnAt(other *Member) bool {
	return m.spec.Path == other.spec.Path && m.Scope() == other.Scope() && reflect.DeepEqual(m.spec.Callers, other.spec.Callers) &&
		m.KeepsCredentials() == other.KeepsCredentials()
}

// recalls reports whether a session is in the store alone and stays here, rather than with the present mount. The
// bridge's own go on there where the server is the same; those of the server, which it was told whose they are as
// callers were known here, do where that is the same, too. What was opened since then at another replica is that one's.
func (m *Member) recalls(present *Member, r *http.Request, session string) bool {
	switch {
	case present == nil || present.Scope() != m.Scope():
		return m.Recall(r, session)
	case m.goesOnAt(present) && present.Relays():
		return false
	default:
		return m.RelayedBefore(r.Context(), session, m.left)
	}
}

// lookEvery is how often a retired mount is asked whether its sessions have ended.
const lookEvery = 200 * time.Millisecond

// retire ends a mount when its last session has ended or limit has passed, or the whole fleet ends. The error is that of the end
// of the fleet: that it had to cut off what ran.
func (f *Fleet) retire(m *Member, limit, drain time.Duration) error {
	if !f.outlast(m, limit) {
		return m.Shutdown(f.cutting)
	}
	switch {
	case m.Busy() > 0:
		m.spec.Log.Warn().Int("sessions", m.Sessions()).Int("calls", m.Bridge.Waiting()).
			Msg("timeouts.handover is over: the sessions under the old settings end, and so do calls that wait without one")
	case f.awaits(m):
		m.spec.Log.Info().Msg("timeouts.handover is over: sessions of the server that was here before, which may be in the store, are not found any more")
	default:
		m.spec.Log.Info().Msg("the last session under the old settings has ended")
	}
	ctx, cancel := context.WithTimeout(f.cutting, drain) // a stop takes nothing of it away
	defer cancel()
	err := m.Retire(ctx)
	if f.cutting.Err() == nil {
		err = nil // what it cut off was said to end
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retired = slices.DeleteFunc(f.retired, func(r *Member) bool { return r == m })
	f.setLocked(f.present)
	f.astrayLocked(m.Scope())
	return err
}

// astrayLocked tells those who have the store of a mount that has ended of the calls that it left there, unless
// another one is yet to end that may have some.
func (f *Fleet) astrayLocked(scope string) {
	if slices.ContainsFunc(f.retired, func(m *Member) bool { return m.Scope() == scope }) {
		return
	}
	for _, p := range f.present {
		if p.Scope() == scope {
			p.Astray()
		}
	}
}

// awaits reports whether sessions may come back from the store that no present mount would find there.
func (f *Fleet) awaits(m *Member) bool {
	return m.Keeps() && !slices.ContainsFunc(f.Members(), func(p *Member) bool { return p.Scope() == m.Scope() })
}

// outlast waits until a retired mount is idle, but no longer than limit. It
// reports false when the whole fleet ended meanwhile.
func (f *Fleet) outlast(m *Member, limit time.Duration) bool {
	over := time.NewTimer(limit)
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if m.Busy() == 0 && !f.awaits(m) {
				return true
			}
		case <-over.C:
			return true
		case <-f.stopping.Done():
			return false
		}
	}
}
