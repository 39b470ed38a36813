package bridge

import (
	"strings"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// The breaker keeps calls from asking in vain: clients declare capabilities that
// they do not serve (F.3). What it has switched off is not declared upstream, so
// that the server can take another path. A client that has answered once is
// trusted: when it does not do so again, a person may just be away.

// breaker tells until when kinds are switched off; the past stands for not.
type breaker [call.Kinds]time.Time

// Distrust implements call.Session: it switches a kind off, for a while only if the client has never served it.
func (c *conversation) Distrust(k call.Kind, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d != call.ForGood && c.served&(1<<k) != 0 {
		return
	}
	if c.breaker == nil {
		c.breaker = new(breaker)
	}
	c.breaker[k] = time.Now().Add(d)
	c.Driver.Background(c.changed)
	if c.Driver.Watch != nil {
		c.Driver.Watch.Distrusted([call.Kinds]observe.Kind{observe.Form, observe.Sampling, observe.Roots}[k])
	}
	c.b.log.Warn().Str("capability", call.CapabilityOf[k]).
		Msg("the client does not serve a capability that it declared; it is not asked again for now")
}

// Trust implements call.Session: it notes that the client serves a kind.
func (c *conversation) Trust(k call.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served |= 1 << k
	if c.breaker != nil {
		c.breaker[k] = time.Time{}
	}
}

// capabilitiesLocked returns what to declare upstream now: what the client declared,
// less what is switched off.
func (c *conversation) capabilitiesLocked() []byte {
	switch {
	case c.Capable == nil:
		return emptyObject
	case c.breaker == nil:
		return c.Capable
	}
	now := time.Now()
	var off []rawjson.Edit
	for k, until := range c.breaker {
		if now.Before(until) {
			off = append(off, rawjson.Edit{Name: call.CapabilityOf[k]})
		}
	}
	return rawjson.Apply(nil, c.Capable, off...)
}

// Distrusts implements call.Session.
func (c *conversation) Distrusts(capability string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _, _ := strings.Cut(capability, ".")
	for k, declared := range call.CapabilityOf {
		if declared == name && c.breaker != nil && time.Now().Before(c.breaker[k]) {
			return true
		}
	}
	return false
}
