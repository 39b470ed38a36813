// Package tap stands around the two contracts which every message passes, to see
// what goes by: downstream.Backend towards clients and upstream.Caller towards the
// server. It changes nothing of what passes.
package tap
