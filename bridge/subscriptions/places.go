package subscriptions

import (
	"errors"

	"github.com/mcpbridge/bridge/internal/budget"
)

// ErrNoPlace is the refusal of a listen for which there is no place.
var ErrNoPlace = errors.New("too many subscriptions are open at the server, by all or with these credentials or from this address (limits.listens)")

// place is what a listen takes: one of Options.Listens, and one of what is endless. A
// session's listen for resources is as much a connection to the server as one that many
// share, and lasts as long, whether or not the client is there.
type place struct {
	party string
	free  func() // gives back what is the process's; nil: nothing
}

// takeLocked takes a place for a party, and makes room for it where it can; nil: there is none.
func (h *Hub) takeLocked(party string) *place {
	if !h.roomLocked(party) {
		return nil
	}
	p := &place{party: party}
	if h.opt.Endless != nil {
		own := func(l *sharedListen) bool { return l.place.party == party }
		p.free, _ = h.opt.Endless.Take(party)
		if p.free == nil && h.makeRoomLocked(own) {
			p.free, _ = h.opt.Endless.Take(party)
		}
		if p.free == nil {
			return nil
		}
	}
	h.taken++
	h.has[party]++
	return p
}

func (h *Hub) giveLocked(p *place) {
	h.taken--
	if h.has[p.party]--; h.has[p.party] == 0 {
		delete(h.has, p.party)
	}
	if p.free != nil {
		p.free()
	}
}

// roomLocked reports whether a party may open one more, and makes room for it where it can.
// The last eighth is for whoever has less than an eighth; who has more gets no room but its
// own.
func (h *Hub) roomLocked(party string) bool {
	kept := 0
	if party != "" {
		kept = budget.Reserved(h.has[party], h.opt.Listens)
	}
	return h.taken < h.opt.Listens-kept || h.makeRoomLocked(func(l *sharedListen) bool { return kept == 0 || l.place.party == party })
}

// makeRoomLocked ends the one of these listens that nobody has heard for longest, if there
// is any.
func (h *Hub) makeRoomLocked(of func(*sharedListen) bool) bool {
	var oldest *sharedListen
	for _, l := range h.shared {
		if l.linger != nil && of(l) && (oldest == nil || l.idle.Before(oldest.idle)) {
			oldest = l
		}
	}
	if oldest == nil {
		return false
	}
	h.endLocked(oldest)
	return true
}

// enter counts a listen of a session's resources in. While one takes the place of another
// there are two, for ackTimeout and overlap at most, in one place. It reports false when there is none.
func (h *Hub) enter(r *Resources, party string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.open == 0 {
		if r.place = h.takeLocked(party); r.place == nil {
			h.refused("a session cannot subscribe to a resource")
			return false
		}
	}
	r.open++
	return true
}

// exit counts one out, when it has ended.
func (h *Hub) exit(r *Resources) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.open--; r.open == 0 {
		h.giveLocked(r.place)
	}
}

// refused tells the log of a listen for which there was no place, and what follows.
func (h *Hub) refused(consequence string) {
	if missed, ok := h.full.due(); ok {
		h.opt.Log.Warn().Int("limit", h.opt.Listens).Int("before", missed).
			Msg("too many subscriptions at the server (limits.listens); " + consequence)
	}
}
