// Package archtest holds the tests that check the repository itself: who may
// import whom, that links in the documentation lead somewhere, and that
// decisions are numbered. It has no code that a program could use.
package archtest
