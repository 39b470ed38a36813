package bridge

import (
	"math"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// breaker tells until when kinds are switched off; the past stands for not.
type breaker [kinds]time.Time

// How long a kind is switched off: for good when the client said that it has no such
// method, else for so many times what it was given to answer.
const (
	forGood  = time.Duration(math.MaxInt64)
	restOver = 6
)

// distrust switches a kind off, for a while only if the client has never served it.
func (c *conversation) distrust(k kind, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d != forGood && c.served&(1<<k) != 0 {
		return
	}
	if c.breaker == nil {
		c.breaker = new(breaker)
	}
	c.breaker[k] = time.Now().Add(d)
	c.b.background(c.changed)
	if c.b.opt.Watch != nil {
		c.b.opt.Watch.Distrusted([kinds]observe.Kind{observe.Form, observe.Sampling, observe.Roots}[k])
	}
	c.b.log.Warn().Str("capability", capabilityOf[k]).
		Msg("the client does not serve a capability that it declared; it is not asked again for now")
}

// trust notes that the client serves a kind.
func (c *conversation) trust(k kind) {
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
	case c.capable == nil:
		return emptyObject
	case c.breaker == nil:
		return c.capable
	}
	now := time.Now()
	var off []rawjson.Edit
	for k, until := range c.breaker {
		if now.Before(until) {
			off = append(off, rawjson.Edit{Name: capabilityOf[k]})
		}
	}
	return rawjson.Apply(nil, c.capable, off...)
}

// instead says what whoever runs the bridge could switch on.
func (c *conversation) instead(capability string) string {
	name, _, _ := strings.Cut(capability, ".")
	setting := map[string]string{
		"elicitation": "have its person asked on a page: questions: page",
		"sampling":    "have a model answer: sampling.provider",
		"roots":       "name some: roots",
	}[name]
	return " (whoever runs the bridge can " + setting + ")"
}

func (c *conversation) distrusts(capability string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _, _ := strings.Cut(capability, ".")
	for k, declared := range capabilityOf {
		if declared == name && c.breaker != nil && time.Now().Before(c.breaker[k]) {
			return true
		}
	}
	return false
}
