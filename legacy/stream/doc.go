// Package stream has the streams of sessions: what the events of one are called, which
// connections bring them to the client, what is kept for a client that comes back, and
// for how long.
//
//	Set, of a session ──▶ sessions.Stream ◀── Response, of one HTTP request
//	                        (event log)    ◀── parked, of package quiet
//
// It knows neither calls nor messages: events are text. An exchange of package legacy
// begins a stream for its call, and a GET listens to the one that belongs to no call.
package stream
