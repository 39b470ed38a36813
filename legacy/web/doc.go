// Package web is the HTTP around messages: what a request accepts and declares, whose
// pages may send it, and the answers that are no event streams. It keeps no state.
package web
