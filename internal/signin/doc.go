// Package signin puts the bridge's own credentials on what goes to a server, for its calls
// and for requests that go around it: with an account of its own (Account), or on behalf of
// each client whose token ends here (Behalf). It sends again what a server refused for want
// of them, and has a person sign in where it takes one. How credentials are got is known to
// package authorize; what the server is, and who may be served, to who mounts it.
package signin
