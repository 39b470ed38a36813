// Package diff compares a message before and after the bridge, and says by which rules
// of docs/translation.md each member changed.
//
// It compares what may be seen of messages. The rules are read from what changed and
// where, not noted while it is changed: the path of a call does nothing for it.
package diff
