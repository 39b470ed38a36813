// Package demo is the content of "bridge demo": an embedded MRTR-only server, a
// legacy client that calls one of its tools, and a screen that shows both hops
// of the bridge between them. It does not know how a bridge is built; the
// caller starts one.
package demo

import (
	"context"
	"io"
	"net/http"
)

// Bridge is a bridge that was started for the demo.
type Bridge struct {
	URL  string // for legacy clients
	View string // where to see what it does; empty: nowhere
	Stop func() // ends it and returns when it is gone
}

// Start starts a bridge on a loopback port chosen by the system, in front of the
// modern server at the URL upstream. The bridge's HTTP handler must be wrapped in
// observe, which records the client-facing hop.
type Start func(ctx context.Context, upstream string, observe func(http.Handler) http.Handler) (Bridge, error)

// Options are what Run needs. Start is required.
type Options struct {
	In  io.Reader
	Out io.Writer

	Interactive bool       // a person at In answers the questions; otherwise the demo does
	Color       bool       // Out understands ANSI colours
	Width       func() int // columns of Out, asked before each line; nil means 100
	Once        bool       // return after the summary instead of staying up
	Client      string     // the revision that the old client speaks; "": 2025-11-25
	// Open shows the bridge's view to the person; nil: its address is only printed. It is
	// not called with Once.
	Open func(page string) error

	Start Start
}
