// Package relayed remembers the sessions of a server that clients have opened through the
// bridge, which hands their requests on as they are: which those are, and who opened them.
// The server has the sessions themselves.
//
//	initialize ──▶ Open: in memory, and in the store where there is one
//	request ─────▶ Find: memory ──▶ store ──▶ nobody knows it
//
// What is known in memory is looked for in the store once a minute at most, as long as it is
// used or a request of it is under way: it lives on there then, and the end that it had at another replica is
// learnt.
package relayed
