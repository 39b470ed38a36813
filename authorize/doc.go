// Package authorize signs the bridge in to an MCP server on behalf of one person
// or machine: it is the OAuth client of 2026-07-28, from the server's refusal to
// the access token that is sent instead, and to its renewal.
//
// It owns discovery, registration, the grants, the redirect's listener and its
// page, and the store in which several processes share one login. It does not
// know MCP messages: whoever sends these asks for the header to send, and says
// when the server refused it.
//
// One login, many processes: a desktop client starts each server twice and kills
// the first. What they share is files, guarded by locks of the operating system,
// which vanish with the process that held them. A sign-in that is under way is a
// file too, so that any process can finish what another one began.
package authorize
