// Package terminal says on a terminal what the pages of package view say in a browser:
// what waits, for whom and why, and the messages of both hops as they pass. It owns the
// layout, for any width, and reads no connection.
package terminal
