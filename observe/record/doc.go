// Package record owns recordings: the form of their lines, which is also that of the
// golden transcripts; what of a message may stand in them; and the writing of one,
// which costs a call a copy and never a wait.
//
// A recording is JSON Lines: a [Head], then one [Line] for each message of either hop
// in the order in which they passed the bridge.
package record
