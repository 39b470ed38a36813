package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Kept tells of the results that need not be asked for again, by method.
func (c *Catalog) Kept() []observe.Kept {
	by := map[string]observe.Kept{}
	c.results.Each(func(q question, size int, put, expires time.Time) {
		k, there := by[q.method]
		if !there {
			k = observe.Kept{Method: q.method, Oldest: put, Newest: put, Until: expires}
		}
		k.Results++
		k.Bytes += size
		if put.Before(k.Oldest) {
			k.Oldest = put
		}
		if put.After(k.Newest) {
			k.Newest = put
		}
		if expires.After(k.Until) {
			k.Until = expires
		}
		by[q.method] = k
	})
	return slices.SortedFunc(maps.Values(by), func(a, b observe.Kept) int { return cmp.Compare(a.Method, b.Method) })
}
