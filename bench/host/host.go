// Package host wires the bridge inside a benchmark process, the way cmd/bridge
// does it for a server with one upstream and default settings.
package host

import (
	"errors"
	"net/http"
)

// New returns the bridge's HTTP handler for an upstream URL.
func New(upstream string) (http.Handler, error) { return nil, errors.New("not wired: " + upstream) }
