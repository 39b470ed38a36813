// Package ends has the words for how calls end: what the client reads, what stands in
// the log, and what those who watch are told. It is the one place where causes become
// such words (sections F.2 and F.4, C-34), and has no state.
package ends
