// Package replay puts recordings to use: it sends their upstream half to a server again
// and says where the answers differ, and it plays the server of a recording to a client.
//
// Request state is never in a recording. Each one has a name there, and the state that
// a server gives now takes the place of the name in the requests that follow.
package replay
