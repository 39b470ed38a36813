// Package logfield names the fields of the log, so that every package spells
// them the same way and a search for one finds all. It owns names, the
// shortening of session ids and paths, and how often a line is written, nothing else. Params, answers, request state,
// tokens and the queries of URLs never become fields.
package logfield

import (
	"net/http"
	"strings"
)

// The fields of a log line.
const (
	SessionID  = "session_id" // shortened with Short: a whole one is a credential
	FlowID     = "flow_id"
	Round      = "round"
	Era        = "era"
	Version    = "version"
	Method     = "method"
	StreamID   = "stream_id"
	Transport  = "transport"
	Upstream   = "upstream" // scheme, host and path of its URL, or its command's name
	Path       = "path"     // of the mount
	End        = "end"      // of a call, in the words of the metrics, as Cause
	Cause      = "cause"    // of an end or a failure
	Rule       = "rule"     // that a peer broke
	Entry      = "entry"    // of a list: a tool, a prompt, a resource
	Code       = "code"     // of a JSON-RPC error
	Remote     = "remote"   // address of a client, as far as it is known
	HTTPMethod = "http_method"
	Tool       = "tool"     // or prompt that a call is about
	Duration   = "duration" // of a call, in ms
)

// Short returns the first eight bytes of a session id: enough to follow a
// session through the log, too little to take it over.
func Short(sessionID string) string {
	return sessionID[:min(len(sessionID), 8)]
}

// longest is how long a part of a path may be that no token is, in bytes.
const longest = 24

// PathOf returns the path of a request without what is long in it, which may be all that it takes to answer a question.
func PathOf(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	for i, part := range parts {
		if len(part) > longest {
			parts[i] = Short(part) + "…"
		}
	}
	return strings.Join(parts, "/")
}
