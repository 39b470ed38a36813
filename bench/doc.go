// Package bench compares the bridge with a tuned httputil.ReverseProxy under
// the same legacy traffic. Its benchmarks run everything in one process, which
// is right for profiles and for the cost of a change; command bench/compare
// runs every part in a process of its own, which is right for the figures that
// are published.
package bench
