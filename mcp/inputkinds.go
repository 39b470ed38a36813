package mcp

// InputKind is one of the things that servers ask clients for: in the input requests of a
// round, and before 2026-07-28 in requests of their own.
//
// The table below is where a kind is let through. What all kinds have in common follows
// from its row; what is a kind's own stands in tables by kind, which the tests of their
// rooms want complete: how a client is asked and how its answer is read (translate), the
// capability's parts (mrtr), the words for it (observe), how an answer says no (bridge/ends),
// the rule by which it changes (observe/diff). A method without a row is an
// error at every door: nothing takes it for a kind that it resembles.
type InputKind uint8

// The kinds.
const (
	Elicitation InputKind = iota
	Sampling
	Roots
	InputKinds // how many there are
)

var inputKinds = [InputKinds]struct {
	method     string
	capability string // of clients, which it needs at least
	params     bool   // a request of the kind says nothing without params
	person     bool   // a person answers, who is asked one thing at a time (C-37)
	unanswered string // the response that stands for none; "" where the call fails then (C-34)
}{
	Elicitation: {MethodElicitationCreate, "elicitation", true, true, `{"action":"cancel"}`},
	Sampling:    {MethodSamplingCreateMessage, "sampling", true, false, ""},
	Roots:       {MethodRootsList, "roots", false, false, ""},
}

// InputKindOf returns the kind of a method; ok is false for all others.
func InputKindOf(method string) (k InputKind, ok bool) {
	for k := range inputKinds {
		if inputKinds[k].method == method {
			return InputKind(k), true
		}
	}
	return InputKinds, false
}

// InputKindThatNeeds returns the kind that needs this capability; ok is false for those
// that no kind needs.
func InputKindThatNeeds(capability string) (k InputKind, ok bool) {
	for k := range inputKinds {
		if inputKinds[k].capability == capability {
			return InputKind(k), true
		}
	}
	return InputKinds, false
}

// Method is that of the kind's requests, "" for what is no kind.
func (k InputKind) Method() string {
	if k >= InputKinds {
		return ""
	}
	return inputKinds[k].method
}

// Capability names the one of clients that the kind needs at least, "" for what is no kind.
func (k InputKind) Capability() string {
	if k >= InputKinds {
		return ""
	}
	return inputKinds[k].capability
}

// NeedsParams reports whether a request of the kind says nothing without params.
func (k InputKind) NeedsParams() bool { return k < InputKinds && inputKinds[k].params }

// AsksPerson reports whether a person answers, who is asked one thing at a time (C-37).
func (k InputKind) AsksPerson() bool { return k < InputKinds && inputKinds[k].person }

// Unanswered is the response that stands for none, for the server to judge; "" where
// there is no such word, and the call fails (C-34).
func (k InputKind) Unanswered() string {
	if k >= InputKinds {
		return ""
	}
	return inputKinds[k].unanswered
}

// InputKindSet is a set of kinds. It is for memory only: what is stored has their names.
type InputKindSet uint8

// With returns the set with k in it.
func (s InputKindSet) With(k InputKind) InputKindSet { return s | 1<<k }

// Has reports whether k is in the set.
func (s InputKindSet) Has(k InputKind) bool { return s&(1<<k) != 0 }
