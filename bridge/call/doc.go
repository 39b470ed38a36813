// Package call drives calls: each is one client request from its arrival to its one end.
// It carries out what the flow of package mrtr decides, towards both hops: requests to
// the server, questions and answers to the client, records for the store.
//
// What is another session's or all sessions' business is not here: a [Call] belongs to a
// [Client], whose doors ([Session]) package bridge has. What a request upstream needs is in package
// flight, the words for ends are in package ends, and what becomes of a call whose client
// comes back for it in package again.
package call
