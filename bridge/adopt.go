package bridge

import (
	"slices"

	"github.com/mcpbridge/bridge/bridge/call"
)

// Adopt implements downstream.Conversation: what both sides have changed since before is
// true of both. Of two levels, this side's counts.
func (c *conversation) Adopt(before, theirs []byte) error {
	base, err := readRecord(before)
	if err != nil {
		return err
	}
	other, err := readRecord(theirs)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.level == base.Level {
		c.level = other.Level
	}
	c.served |= other.Served
	c.adoptBreakerLocked(base, other)
	c.mu.Unlock()
	c.adoptResources(base.Resources, other.Resources)
	return nil
}

func (c *conversation) adoptBreakerLocked(base, other *sessionRecord) {
	for k, name := range call.CapabilityOf {
		until := other.Breaker[name]
		if until.Equal(base.Breaker[name]) {
			continue
		}
		if c.breaker == nil {
			c.breaker = new(breaker)
		}
		c.breaker[k] = until
	}
}

// adoptResources subscribes to what the other side has subscribed to since before, and
// leaves what that has left. It does not wait for the server.
func (c *conversation) adoptResources(before, theirs []string) {
	if c.push == nil || slices.Equal(before, theirs) {
		return
	}
	resources := c.subscriptions()
	mine := resources.Subscribed()
	uris := slices.DeleteFunc(slices.Clone(mine), func(uri string) bool {
		return slices.Contains(before, uri) && !slices.Contains(theirs, uri)
	})
	for _, uri := range theirs {
		if !slices.Contains(before, uri) && !slices.Contains(uris, uri) {
			uris = append(uris, uri)
		}
	}
	if !slices.Equal(uris, mine) {
		resources.Restore(c.authorization, uris, func(err error) {
			c.b.log.Warn().Err(err).Int("resources", len(uris)).Msg("subscriptions that were made at another replica could not be taken up")
		})
	}
}
