package bridge

import "maps"

// roster is a set of conversations that shrinks when most of them have gone: Go's
// maps never give memory back. The zero roster is empty. Its owner's lock guards it.
type roster struct {
	set  map[*conversation]struct{}
	most int // how many it held since the map was made
}

// roomy is the number of members below which a map is not worth making anew.
const roomy = 1024

func (r *roster) add(c *conversation) {
	if r.set == nil {
		r.set = make(map[*conversation]struct{})
	}
	r.set[c] = struct{}{}
	r.most = max(r.most, len(r.set))
}

// remove is idempotent. Its cost is constant over many removals.
func (r *roster) remove(c *conversation) {
	delete(r.set, c)
	if r.most < roomy || len(r.set) > r.most/4 {
		return
	}
	smaller := make(map[*conversation]struct{}, len(r.set))
	maps.Copy(smaller, r.set)
	r.set, r.most = smaller, len(smaller)
}

func (r *roster) len() int { return len(r.set) }

// all returns the members of this moment.
func (r *roster) all() []*conversation {
	members := make([]*conversation, 0, len(r.set))
	for c := range r.set {
		members = append(members, c)
	}
	return members
}
