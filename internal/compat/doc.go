// Package compat holds the tests that look at the bridge as a whole, from both
// ends of the wire: what each legacy revision gets of each feature, what bad
// input from a server leads to, what never crosses whatever is sent, and
// whether every rule of docs/translation.md is cited by a test. It writes the
// table of docs/compatibility.md from what it saw:
//
//	go test ./internal/compat -update
//
// It has no code that a program could use.
package compat
