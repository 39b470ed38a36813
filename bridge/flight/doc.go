// Package flight has what a call needs for its request that is in flight upstream: what
// cancels it, what its response is charged to, and a clock for the bridge's own share
// of the time.
package flight
