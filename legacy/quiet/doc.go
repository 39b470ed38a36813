// Package quiet keeps parked connections: those that no goroutine serves.
//
// A stream that says nothing for a while, because a person thinks or because
// nothing happens, would cost two goroutines, the request and its buffers: some
// 25 KiB. Therefore it gives its connection away and lets its handler return:
//
//	handler: a response ──quiet for a while──▶ parked ──end of the stream──▶ idleConn
//	                        (Park: hijack)       │                             │ next request
//	                                             ▼ hang-up                     ▼
//	                                          detached                back to the server
//
// A parked response writes to the connection by itself, and a poller tells it when
// the client hangs up. After the end of the response the poller waits for the
// client's next request, with which the server gets the connection back. Clients
// notice nothing of all this.
//
// It knows no sessions and no requests: what a response brings, and whose it is, stands
// behind the interface Stream. Package legacy/stream decides who is parked, and when.
package quiet
