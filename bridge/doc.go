// Package bridge joins the client-facing server (package legacy) to the modern
// client (package upstream): it implements downstream.Backend, and knows which session
// and which call a message is for.
//
//	legacy.HTTP ──▶ Bridge.Open ──▶ conversation ──▶ call.Call ──▶ upstream.Caller
//	                                     │               │
//	                                     │               └─ mrtr.Flow (what to do next)
//	                                     └─ package subscriptions (what the server announces)
//
// A [conversation] is one client's session: its version, capabilities, calls in
// flight and open server requests. A call is one client request (package call); it lives as
// long as its flow, in the goroutine of whoever had the last event for it: the
// client's request, the client's answer or a timer. While a person thinks there
// is no goroutine, only data and one timer.
//
// What is known of the server is package catalog's, what it announces package
// subscriptions', and calls that run as tasks of their client package tasks' business.
//
// The order of its locks stands in docs/architecture.md; none is held across an
// upstream call, and none while something is written to a client.
package bridge
