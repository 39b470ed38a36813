// Package legacy is the server that legacy clients see: Streamable HTTP,
// HTTP+SSE, WebSocket and stdio, with their sessions, streams and event ids.
//
// It owns everything about how messages reach a client and come from it, and
// nothing about what they mean: a downstream.Backend answers
// them. Package bridge implements it.
//
//	POST ──▶ guard ──▶ session.Set ──▶ parse ──▶ exchange ──▶ Conversation.Serve
//	GET  ──▶ guard ──▶ session.Set ──▶ stream.Set
//	               └─ it is another replica's: forward, or take over
//
// This package is the front: it judges requests, refuses them, and knows which room each goes
// to. Sessions of Streamable HTTP are package session's, what a POST starts is package
// exchange's, streams and what brings them to clients are package stream's, connections
// that no goroutine serves package quiet's, sessions over one connection package
// channel's.
//
// Key invariants
//
//   - What a request costs is charged before it is read, and it is judged before anything
//     is done for it.
//   - A refusal is one that clients of its version understand: 404 makes them initialize
//     again, 405 is taken quietly, 400 for a failed initialize is not.
//   - Any request of a session may come here, whichever replica has what it is about.
package legacy
