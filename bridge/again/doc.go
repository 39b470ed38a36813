// Package again has resumable calls, those that outlive their requests: a person takes longer to answer than
// a client waits, so the request is answered with what is pending, and the call waits for the
// same call to be made again.
//
// It owns who waits and for how long, and what is open meanwhile. What the call does is its
// flow's; a Reply stands between that and whichever request waits.
//
//	flow ──▶ Reply, a downstream.Reply ──▶ the request that waits, if there is one
//	                  ▲
//	same call again ──┘ Replies.Rejoin
//
// Key invariants
//
//   - Nothing runs for which nobody waits: answers are held back until the call is repeated.
//   - What has begun to run does so once: the same call waits for it, and gets what it came to if the client
//     that waited has lost that.
//   - A call is repeated by whom it was made for alone, with the same method and params.
package again
