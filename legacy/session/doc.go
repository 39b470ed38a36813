// Package session has the sessions of Streamable HTTP: who they belong to, which request
// names which, and their records in a store, from which they come back in another process
// and which several replicas of the bridge may share.
//
// It owns what a session is between two requests. What a request does in it is package
// exchange's, what its streams bring is package stream's, and what its messages
// mean is the conversation's.
//
//	request ──Find──▶ Set ──▶ live here ─────────────────▶ Session
//	                   │        └─ stale: refresh ◀──┐
//	                   └─ unknown: restore ◀── store ┘
//	          Rotated: with newer credentials than it is bound to (H-6)
//
// Key invariants
//
//   - To another principal a session doesn't exist (H-8).
//   - Its record is saved before its client learns of it, or of a change.
//   - A session ends once, and a record that somebody ended never brings it back.
package session
