package bridge

import (
	"math"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// The breaker keeps calls from asking in vain: clients declare capabilities that
// they do not serve (F.3). What it has switched off is not declared upstream, so
// that the server can take another path. A client that has answered once is
// trusted: when it does not do so again, a person may just be away.

// kind is one of the things that servers ask clients for.
type kind int

const (
	elicitation kind = iota
	sampling
	roots
	kinds
)

var capabilityOf = [kinds]string{"elicitation", "sampling", "roots"}

func kindOf(method string) kind {
	switch method {
	case mcp.MethodElicitationCreate:
		return elicitation
	case mcp.MethodSamplingCreateMessage:
		return sampling
	}
	return roots
}

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

// undeclared words the refusal of a round that asks for what was not declared
// upstream (C-33). Why it was not is the client's business, and may be in its hands.
func (k ending) undeclared(capability string) string {
	asked := "the server asked for " + capability + ", "
	switch {
	case k.conv.capable == nil:
		return asked + "which needs a session: send initialize first"
	case !k.out.Interactive():
		return asked + "but nothing can be asked on this request: its Accept header lacks text/event-stream"
	case k.conv.distrusts(capability):
		return asked + "which this client declared but did not serve when it was last asked"
	}
	return asked + "which the client did not declare" + k.conv.instead(capability)
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
