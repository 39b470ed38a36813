// Package admin guards the listener for the people who run the bridge: who may
// look is decided here, what they see elsewhere.
//
// A request passes when its Host cannot have been rebound, no other page sent it,
// and it carries the token, as a bearer or as the cookie that the token was
// exchanged for. The token travels to the browser in the fragment of a URL, which
// reaches neither logs nor other sites.
package admin
