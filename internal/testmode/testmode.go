// Package testmode says with which plumbing the tests run: with the bridge's own
// HTTP/1.1, with parked streams and a journal beside a store in a file, or, when the
// environment holds the settings BRIDGE_HTTP=standard, BRIDGE_PARK=off and
// BRIDGE_STORE_JOURNAL=off, by net/http, with a goroutine for each stream and without one. The constructors of tests ask it, so that the whole suite runs
// either way. Only tests import it.
package testmode

import (
	"net/http"
	"os"
	"testing"

	"github.com/mcpbridge/bridge/legacy/h1"
)

// The settings of the program that tests obey.
const (
	httpVariable = "BRIDGE_HTTP"
	parkVariable = "BRIDGE_PARK"

	journalVariable = "BRIDGE_STORE_JOURNAL" // of runs of the program alone
)

// StandardHTTP reports whether net/http speaks on both hops.
func StandardHTTP() bool { return os.Getenv(httpVariable) == "standard" }

// NoPark reports whether streams keep their goroutines.
func NoPark() bool { return os.Getenv(parkVariable) == "off" }

// Environ is the environment that has a run of the program do as the tests do.
func Environ() []string {
	var environ []string
	for _, name := range []string{httpVariable, parkVariable, journalVariable} {
		if value := os.Getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// NewServer returns the server for a test's connections.
func NewServer(handler http.Handler, standard *http.Server) *h1.Server {
	if StandardHTTP() {
		return h1.NewStandard(handler, standard)
	}
	return h1.New(handler, standard)
}

// NeedsLean skips a test that is about the bridge's own HTTP/1.1.
func NeedsLean(t testing.TB) {
	t.Helper()
	if StandardHTTP() {
		t.Skip("about the bridge's own HTTP/1.1, which " + httpVariable + "=standard turns off")
	}
}

// NeedsParking skips a test that is about parked streams.
func NeedsParking(t testing.TB) {
	t.Helper()
	if NoPark() {
		t.Skip("about parked streams, which " + parkVariable + "=off turns off")
	}
}
