package catalog

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/ttlcache"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// Results are kept as the server sent them, for as long as their ttlMs allows
// (B-40): what a client gets depends on its version. Nothing of a flow with answers
// or request state goes in or out (B-43, D-I10).

// Bounds of the results: what a server calls cacheable for ever is asked again
// after maxResultTTL, and what does not fit is not kept.
const (
	maxResultTTL   = 5 * time.Minute
	maxResults     = 1024
	maxResultBytes = 32 << 20
)

// question has everything that a result may depend on besides who asks (B-41).
type question struct {
	method  string
	uri     string // of resources/read
	rest    string // the other params and the declared capabilities
	variant string // hop.Variant, also of what is public
}

// size counts what a client wrote into it.
func (q *question) size() int { return len(q.uri) + len(q.rest) + len(q.variant) }

// Slot is where the result of a request may be kept.
type Slot struct {
	catalog  *Catalog
	audience string
	question question
	epoch    ttlcache.Epoch
}

// Lookup returns a result that is still fresh for this principal's request, made with
// the headers and the declared capabilities. Without one it returns the slot to keep one in, which
// is nil for requests whose results are never kept.
func (c *Catalog) Lookup(principal string, header http.Header, req *downstream.Request, capabilities []byte) ([]byte, *Slot) {
	if !cacheable(req.Method) {
		return nil, nil
	}
	slot := &Slot{catalog: c, audience: hop.Audience(principal, header), question: questionOf(header, req, capabilities)}
	result, epoch, ok := c.results.Get(slot.audience, slot.question)
	if ok {
		return result, nil
	}
	slot.epoch = epoch
	return nil, slot
}

// Keep keeps a copy of the result for as long as it says, unless something was
// invalidated since the Lookup.
func (s *Slot) Keep(result []byte) {
	ttl, public := s.catalog.lifetime(s.question.method, result)
	size := s.question.size() + len(result)
	if ttl <= 0 || size > maxResultBytes/16 {
		return // it would be copied for nothing
	}
	s.question.variant = strings.Clone(s.question.variant) // not the whole head of the request
	s.catalog.results.Put(s.audience, s.question, s.epoch, ttlcache.Item[[]byte]{
		Value: bytes.Clone(result), Size: size, TTL: ttl, Public: public,
	})
}

// Invalidate forgets what a notification of the server makes stale. It comes before
// the client hears of it and asks again (B-44, C-21). params is raw JSON.
func (c *Catalog) Invalidate(notification string, params []byte) {
	uri, _ := rawjson.Name(rawjson.Get(params, "uri"))
	c.results.Drop(func(q question) bool {
		switch notification {
		case mcp.NotificationToolsListChanged:
			return q.method == mcp.MethodToolsList
		case mcp.NotificationPromptsListChanged:
			return q.method == mcp.MethodPromptsList
		case mcp.NotificationResourcesListChanged:
			return q.method == mcp.MethodResourcesList || q.method == mcp.MethodResourcesTemplatesList
		case mcp.NotificationResourcesUpdated: // of the resource or of a part of it
			return q.method == mcp.MethodResourcesRead && strings.HasPrefix(uri, q.uri)
		}
		return false
	})
}

// cacheable reports whether results of method may be kept at all.
func cacheable(method string) bool {
	switch method {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList,
		mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead:
		return true
	}
	return false
}

func questionOf(header http.Header, req *downstream.Request, capabilities []byte) question {
	params := req.Params
	if params == nil {
		params = []byte("{}")
	}
	uri, _ := rawjson.Name(req.URI)
	rest := rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta", Value: foreignMeta(req.Meta)}, rawjson.Edit{Name: "uri"})
	return question{method: req.Method, uri: uri, rest: string(append(rest, capabilities...)), variant: hop.Variant(header)}
}

// foreignMeta returns what a request's _meta holds besides the protocol's own members,
// which are about its delivery and not its result; nil: nothing.
func foreignMeta(meta []byte) []byte {
	var foreign []byte
	for name, value := range rawjson.Members(meta) {
		if bytes.HasPrefix(name, []byte(mcp.MetaPrefix)) || string(name) == "progressToken" {
			continue
		}
		foreign = append(rawjson.AppendQuote(append(foreign, ','), string(name)), ':')
		foreign = append(foreign, value...)
	}
	if foreign == nil {
		return nil
	}
	foreign[0] = '{'
	return append(foreign, '}')
}

// lifetime returns how long a result may be kept, and whether everyone may see it
// (B-40, B-42).
func (c *Catalog) lifetime(method string, result []byte) (ttl time.Duration, public bool) {
	if mcp.IsList(method) {
		known := c.lists.about(method, result)
		return known.ttl, known.public
	}
	return lifetime(result)
}

func lifetime(result []byte) (ttl time.Duration, public bool) {
	scope, _ := rawjson.Text(rawjson.Get(result, "cacheScope"))
	ms, ok := rawjson.Int(rawjson.Get(result, "ttlMs"))
	if !ok {
		return 0, false
	}
	return time.Duration(max(0, min(ms, maxResultTTL.Milliseconds()))) * time.Millisecond, scope == "public"
}

// Cached tells of the results that need not be asked for again, by method.
func (c *Catalog) Cached() []observe.CachedResults {
	by := map[string]observe.CachedResults{}
	c.results.Each(func(q question, size int, put, expires time.Time) {
		k, there := by[q.method]
		if !there {
			k = observe.CachedResults{Method: q.method, Oldest: put, Newest: put, Until: expires}
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
	return slices.SortedFunc(maps.Values(by), func(a, b observe.CachedResults) int { return cmp.Compare(a.Method, b.Method) })
}
