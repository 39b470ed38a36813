package budget

import (
	"errors"
	"sync"
	"time"
)

// ErrNoRoom says that what was to be kept in the store would be too much there.
var ErrNoRoom = errors.New("too much is kept in the bridge's store at the moment, for this client or for all (store.size); try again later")

// Room is how much may be kept in a store, in bytes, which outlives whoever has it in memory. The
// last eighth is for whoever has less than an eighth. Nothing is known of what others put there,
// be it another process or this one before its start, and memory for it is not needed:
// a tenant has a sum for each slot of time in which some of it expires. Its methods are safe for
// concurrent use; the nil Room is without bounds.
type Room struct {
	now  func() time.Time
	more func() int64 // how large it may be by now; nil: no larger than it is

	mu      sync.Mutex
	size    int64
	asked   time.Time // when more was asked last
	used    int64
	tenants map[string]*tenant
	cleared int64 // the slot up to which all that has expired was given back
}

// tenant is who keeps something.
type tenant struct {
	used  int64
	until map[int64]int64 // bytes by the slot in which they expire
}

// Kept is what one record takes of a room, for as long as somebody can say that it is changed or
// removed: what is left behind is given back when it expires. The zero Kept is of no
// room. Its room, which never changes, guards it.
type Kept struct {
	room   *Room
	tenant string
	bytes  int64
	slot   int64
}

// slotSeconds is how long a slot of time is: what has expired counts for so long at most, and each look at all slots takes
// its time.
const slotSeconds = 15

// overhead is what a record takes besides its value, about: keys, the seal, its place in the engine.
const overhead = 512

// NewRoom returns a room of so many bytes.
func NewRoom(size int64) *Room {
	return &Room{size: size, now: time.Now, tenants: map[string]*tenant{}}
}

// Grow has a room in which something finds no place ask how large it may be by now, once a second at most: a disk that
// was full when it was measured may have room since. It is to be called before the room is used. The room never becomes smaller.
func (r *Room) Grow(more func() int64) { r.more = more }

// grow reports whether the room is larger than it was. Others need not wait for who is asked, which may be a disk that hangs.
func (r *Room) grow() bool {
	r.mu.Lock()
	now := r.now()
	due := r.more != nil && now.Sub(r.asked) >= time.Second
	if due {
		r.asked = now
	}
	r.mu.Unlock()
	if !due {
		return false
	}
	size := r.more()
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.size
	r.size = max(before, size)
	return r.size > before
}

// Used returns how much is kept.
func (r *Room) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearLocked()
	return r.used
}

// Empty returns what a record takes that is not kept yet.
func (r *Room) Empty() Kept { return Kept{room: r} }

// Find returns what the record of a tenant takes that was kept before, by whom in this process
// left it or by another one. It is the tenant for which it was kept, whoever comes back for it.
func (r *Room) Find(tenant string, bytes int, ttl time.Duration) Kept {
	k := r.Left(tenant, bytes, ttl)
	if r == nil || k.bytes > 0 {
		return k
	}
	k.Charge(tenant, bytes, ttl)
	return k
}

// Left is Find for a record that this process kept and is about to be removed: of what is not counted any more nothing is given back.
func (r *Room) Left(tenant string, bytes int, ttl time.Duration) Kept {
	if r == nil {
		return Kept{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size, slot := int64(bytes)+overhead, r.slotOf(ttl)
	if of := r.tenants[tenant]; of != nil {
		for _, i := range [...]int64{slot, slot - 1, slot + 1} { // engines are not exact
			if of.until[i] >= size {
				return Kept{r, tenant, size, i}
			}
		}
	}
	return Kept{room: r}
}

// Set is told of a record before it is kept: how long its value is, whose it is, and how long it
// lives. It returns ErrNoRoom, and changes nothing, when that is more than before and too much.
func (k *Kept) Set(tenant string, bytes int, ttl time.Duration) error {
	r := k.room
	if r == nil || k.try(tenant, bytes, ttl) || r.grow() && k.try(tenant, bytes, ttl) {
		return nil
	}
	return ErrNoRoom
}

// try is Set, and reports whether there is room.
func (k *Kept) try(tenant string, bytes int, ttl time.Duration) bool {
	r := k.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearLocked()
	next := Kept{r, tenant, int64(bytes) + overhead, r.slotOf(ttl)}
	if more := next.bytes - k.bytes; more > 0 && !r.fitsLocked(tenant, more) {
		return false
	}
	r.putLocked(k, next)
	return true
}

// Charge is Set for what cannot be refused any more.
func (k *Kept) Charge(tenant string, bytes int, ttl time.Duration) {
	if r := k.room; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.putLocked(k, Kept{r, tenant, int64(bytes) + overhead, r.slotOf(ttl)})
	}
}

// Renew is told that the record lives for this long from now on.
func (k *Kept) Renew(ttl time.Duration) {
	if r := k.room; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if k.bytes > 0 {
			r.putLocked(k, Kept{r, k.tenant, k.bytes, r.slotOf(ttl)})
		}
	}
}

// Release is told that the record was removed, or never kept.
func (k *Kept) Release() {
	if r := k.room; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.putLocked(k, Kept{room: r})
	}
}

func (r *Room) fitsLocked(name string, more int64) bool {
	room := r.size
	if of := r.tenants[name]; of != nil && name != "" {
		room -= int64(Reserved(int(of.used), int(r.size)))
	}
	return r.used+more <= room
}

// putLocked has next counted in place of k.
func (r *Room) putLocked(k *Kept, next Kept) {
	if next.tenant == k.tenant && next.slot == k.slot {
		r.addLocked(&next, next.bytes-k.bytes)
	} else {
		r.addLocked(k, -k.bytes)
		r.addLocked(&next, next.bytes)
	}
	k.tenant, k.bytes, k.slot = next.tenant, next.bytes, next.slot // its room is read without the lock
}

// addLocked adds to what k's tenant has in k's slot, if it does not lie behind: that was given back.
func (r *Room) addLocked(k *Kept, bytes int64) {
	if bytes == 0 || k.slot < r.cleared {
		return
	}
	of := r.tenants[k.tenant]
	if of == nil {
		of = &tenant{until: map[int64]int64{}}
		r.tenants[k.tenant] = of
	}
	before := of.until[k.slot]
	bytes = max(bytes, -before) // two may have found one
	if before+bytes == 0 {
		delete(of.until, k.slot)
	} else {
		of.until[k.slot] = before + bytes
	}
	r.usedLocked(of, k.tenant, bytes)
}

func (r *Room) usedLocked(of *tenant, name string, bytes int64) {
	r.used += bytes
	if of.used += bytes; of.used == 0 {
		delete(r.tenants, name)
	}
}

// clearLocked gives back what has expired, once a slot.
func (r *Room) clearLocked() {
	now := r.now().Unix() / slotSeconds
	if now <= r.cleared {
		return
	}
	r.cleared = now
	for name, of := range r.tenants {
		for slot, bytes := range of.until {
			if slot < now {
				delete(of.until, slot)
				r.usedLocked(of, name, -bytes)
			}
		}
	}
}

// slotOf returns the slot in which a record expires that lives for this long.
func (r *Room) slotOf(ttl time.Duration) int64 { return r.now().Add(ttl).Unix() / slotSeconds }
