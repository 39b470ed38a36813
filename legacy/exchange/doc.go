// Package exchange has what one POST starts: the work on its requests, the response, whose shape
// is chosen as late as possible, and the record of a call that waits for its client, with which
// another replica of the bridge can go on.
//
//	Begin ──▶ Exchange ◀── Send, Save, Finish ── Conversation.Serve
//	   │         ├─ JSON: the result was first (E-6)
//	   │         └─ SSE: stream.Response
//	   └─ Wait, Detach: the handler of the POST
//	Find ──▶ Call ──▶ TakeOver ──▶ Exchange, in another process
//
// Key invariants
//
//   - An exchange is keyed by its own HTTP request, never by the client's id, so
//     clients that reuse ids never see each other's answers.
//   - An HTTP request is not its exchange: the client may leave while the work
//     goes on, and fetch the rest with Last-Event-ID (E-12, E-20).
//   - A response has one writer at a time, whom the exchange's phase or the stream
//     names, and none after its handler has returned.
//   - A call is kept before its question leaves, and in one process at a time.
package exchange
