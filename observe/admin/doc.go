// Package admin guards the listener for the people who run the bridge: who may
// look is decided here, what they see elsewhere.
//
// A request passes when its Host cannot have been rebound, no other page sent it,
// and it carries, as a bearer, the token or a pass that the token was exchanged for.
// The token travels to the browser in the fragment of a URL, which reaches neither
// logs nor other sites; the pass stays in the storage of the tab, which belongs to
// scheme, host and port, and is no cookie, which would go to every port of the host.
package admin
