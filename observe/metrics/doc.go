// Package metrics counts and measures what the rooms of the bridge report, for
// Prometheus. It owns the names, units, labels and buckets of all metrics, and is the
// only package that knows Prometheus.
//
// What has ended is counted on the path of the call: atomic additions to children
// that were resolved before, without an allocation. What is under way is read when
// somebody scrapes. What is not one of the protocol's or the bridge's own words counts as
// _OTHER, but for the names of clients, servers and tools, of which there are at most so many.
package metrics
