package bridge

import "testing"

func TestRosterShrinksAndForgetsNobody(t *testing.T) {
	var r roster
	r.remove(new(conversation))
	members := make([]*conversation, 4*roomy)
	for i := range members {
		members[i] = new(conversation)
		r.add(members[i])
	}
	r.add(members[0])
	for i, c := range members[:len(members)-10] {
		r.remove(c)
		r.remove(c)
		if left := len(members) - i - 1; r.len() != left {
			t.Fatalf("%d members, want %d", r.len(), left)
		}
	}
	if len(r.all()) != 10 || r.most >= roomy {
		t.Errorf("%d members, in a map for %d", len(r.all()), r.most)
	}
	for _, c := range members[len(members)-10:] {
		if _, ok := r.set[c]; !ok {
			t.Error("a member is lost")
		}
	}
}
