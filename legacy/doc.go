// Package legacy is the server that legacy clients see: Streamable HTTP,
// HTTP+SSE, WebSocket and stdio, with their sessions, streams and event ids.
//
// It owns everything about how messages reach a client and come from it, and
// nothing about what they mean: a downstream.Backend answers
// them. Package bridge implements it.
//
//	POST ──▶ guard ──▶ parse ──▶ session ──▶ exchange ──▶ Conversation.Serve
//	                                            │ Reply
//	                      JSON ◀── result first ┤
//	                       SSE ◀── Send, delay ─┴▶ sessions.Stream ──▶ stream.Response
//
// Streams and what brings them to clients are package stream's, connections that no
// goroutine serves package quiet's, sessions over one connection package channel's.
//
// Key invariants
//
//   - An exchange is keyed by its own HTTP request, never by the client's id, so
//     clients that reuse ids never see each other's answers.
//   - An HTTP request is not its exchange: the client may leave while the work
//     goes on, and fetch the rest with Last-Event-ID (E-12, E-20).
//   - The shape of a response, JSON or SSE, is chosen as late as possible (E-6).
//   - A response has one writer at a time, whom the exchange's phase or the stream
//     names, and none after its handler has returned.
package legacy
