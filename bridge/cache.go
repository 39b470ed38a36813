package bridge

import (
	"bytes"
	"crypto/sha256"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// cache keeps the upstream's list and read results for as long as their ttlMs
// allows (B-40). It holds them as the upstream sent them: what a client gets
// depends on its version. Nothing of a flow with answers or request state goes
// in or out (B-43, D-I10).
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]cacheEntry
	bytes   int
	epoch   uint64 // counts invalidations, so that an older answer is not stored after one
}

// cacheKey has everything that a result may depend on (B-41, B-42).
type cacheKey struct {
	principal string // for whom it is; anyone's under everyone
	method    string
	uri       string // of resources/read
	rest      string // the other params and the declared capabilities
}

// size counts what a client wrote into the key.
func (k *cacheKey) size() int { return len(k.uri) + len(k.rest) }

type cacheEntry struct {
	result  []byte
	expires time.Time
}

// everyone owns the results that the server calls public and gave to a caller
// without credentials. A public result that took credentials to get is not
// shown to those who have none (B-45).
const everyone = "\x00"

// Bounds of the cache: what a server calls cacheable for ever is asked again
// after maxCacheTTL, and what does not fit is not kept.
const (
	maxCacheTTL     = 5 * time.Minute
	maxCacheEntries = 1024
	maxCacheBytes   = 32 << 20
)

func newCache() *cache { return &cache{entries: make(map[cacheKey]cacheEntry)} }

// cacheable reports whether results of method may be kept at all.
func cacheable(method string) bool {
	switch method {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList,
		mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead:
		return true
	}
	return false
}

// keyOf builds the key of a request.
func (k *call) keyOf() cacheKey {
	params := k.req.Params
	if params == nil {
		params = emptyObject
	}
	uri, _ := rawjson.Text(k.req.URI)
	meta := foreignMeta(k.req.Meta)
	rest := rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta", Value: meta}, rawjson.Edit{Name: "uri"})
	return cacheKey{
		principal: audience(&k.caller),
		method:    k.req.Method,
		uri:       uri,
		rest:      string(append(rest, k.flow.Capabilities...)),
	}
}

// foreignMeta returns what a request's _meta holds besides the protocol's own members,
// which are about its delivery and not its result; nil: nothing.
func foreignMeta(meta []byte) []byte {
	own := []rawjson.Edit{{Name: "progressToken"}}
	foreign := 0
	for name := range rawjson.Members(meta) {
		switch {
		case bytes.HasPrefix(name, []byte(mcp.MetaPrefix)):
			own = append(own, rawjson.Edit{Name: string(name)})
		case string(name) != "progressToken":
			foreign++
		}
	}
	if foreign == 0 {
		return nil
	}
	return rawjson.Apply(nil, meta, own...)
}

// audience names for whom a request is: its principal, and whatever else its headers
// tell the server, which may know users by another one than Authorization (B-42).
func audience(caller *downstream.Caller) string {
	var told []string
	upstream.Forward(caller.Header, func(name, value string) {
		if name = textproto.CanonicalMIMEHeaderKey(name); !impersonal[name] {
			told = append(told, name+":"+value)
		}
	})
	if len(told) == 0 {
		return caller.Principal
	}
	slices.Sort(told)
	sum := sha256.Sum256([]byte(strings.Join(told, "\n")))
	return caller.Principal + "\x00" + string(sum[:])
}

// impersonal headers are sent by clients of all users alike, or differ by request.
var impersonal = map[string]bool{
	"Accept-Language": true, "Baggage": true, "Cache-Control": true, "Dnt": true, "Pragma": true, "Priority": true, "Referer": true,
	"Traceparent": true, "Tracestate": true, "User-Agent": true, "X-Correlation-Id": true, "X-Request-Id": true,
}

// get returns a fresh result, or nil and the epoch to store one under.
func (c *cache) get(key cacheKey) (result []byte, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, owner := range [...]string{key.principal, everyone} {
		key.principal = owner
		if e, ok := c.entries[key]; ok && now.Before(e.expires) {
			return e.result, c.epoch
		}
	}
	return nil, c.epoch
}

// put keeps result for as long as it says, unless something was invalidated
// since epoch.
func (c *cache) put(key cacheKey, epoch uint64, result []byte, ttl time.Duration, public bool) {
	size := key.size() + len(result)
	if ttl <= 0 || size > maxCacheBytes/16 {
		return
	}
	if public && key.principal == "" {
		key.principal = everyone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != epoch {
		return
	}
	c.remove(key)
	c.makeRoom(size)
	c.entries[key] = cacheEntry{clone(result), time.Now().Add(ttl)}
	c.bytes += size
}

// lifetime returns how long a result may be kept, and whether everyone may see it
// (B-40, B-42).
func (b *Bridge) lifetime(method string, result []byte) (ttl time.Duration, public bool) {
	if mcp.IsList(method) {
		known := b.lists.about(method, result)
		return known.ttl, known.public
	}
	return lifetime(result)
}

func lifetime(result []byte) (ttl time.Duration, public bool) {
	scope, _ := rawjson.Text(rawjson.Get(result, "cacheScope"))
	return ttlOf(result), scope == "public"
}

func ttlOf(result []byte) time.Duration {
	ms, ok := rawjson.Int(rawjson.Get(result, "ttlMs"))
	if !ok {
		return 0
	}
	return time.Duration(max(0, min(ms, maxCacheTTL.Milliseconds()))) * time.Millisecond
}

// makeRoom drops what has expired, then whatever the map yields first: a cache
// this full has no order worth keeping. The caller holds mu.
func (c *cache) makeRoom(size int) {
	full := func() bool { return len(c.entries) >= maxCacheEntries || c.bytes+size > maxCacheBytes }
	now := time.Now()
	for _, onlyExpired := range [...]bool{true, false} {
		for key, e := range c.entries {
			if !full() {
				return
			}
			if !onlyExpired || !now.Before(e.expires) {
				c.remove(key)
			}
		}
	}
}

func (c *cache) remove(key cacheKey) {
	if e, ok := c.entries[key]; ok {
		c.bytes -= key.size() + len(e.result)
		delete(c.entries, key)
	}
}

// invalidate drops what a list-changed notification makes stale (B-44).
func (c *cache) invalidate(notification string) {
	c.drop(func(key cacheKey) bool {
		switch notification {
		case mcp.NotificationToolsListChanged:
			return key.method == mcp.MethodToolsList
		case mcp.NotificationPromptsListChanged:
			return key.method == mcp.MethodPromptsList
		case mcp.NotificationResourcesListChanged:
			return key.method == mcp.MethodResourcesList || key.method == mcp.MethodResourcesTemplatesList
		}
		return false
	})
}

// invalidateRead drops reads of uri and of what it may be a part of: an update
// may name a sub-resource of the one that was subscribed.
func (c *cache) invalidateRead(uri string) {
	c.drop(func(key cacheKey) bool {
		return key.method == mcp.MethodResourcesRead && strings.HasPrefix(uri, key.uri)
	})
}

func (c *cache) drop(stale func(cacheKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for key := range c.entries {
		if stale(key) {
			c.remove(key)
		}
	}
}

// cached answers a call from the cache, or begins to watch for its result.
func (k *call) cached() bool {
	if !cacheable(k.req.Method) {
		return false
	}
	key := k.keyOf()
	result, epoch := k.conv.b.cache.get(key)
	if result == nil {
		k.keep = func(result []byte) {
			ttl, public := k.conv.b.lifetime(key.method, result)
			k.conv.b.cache.put(key, epoch, result, ttl, public)
		}
		return false
	}
	k.conv.ended(k.req.ID)
	return k.conv.deliver(k.out, &k.req, result, nil) == nil
}

// invalidates tells the cache what a notification makes stale, before the
// client hears of it and asks again (B-44, C-21).
func (b *Bridge) invalidates(msg jsonrpc.Message) {
	if msg.Method == mcp.NotificationResourcesUpdated {
		uri, _ := rawjson.Text(rawjson.Get(msg.Params, "uri"))
		b.cache.invalidateRead(uri)
		return
	}
	b.cache.invalidate(msg.Method)
}
