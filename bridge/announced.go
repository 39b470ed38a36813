package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// hearing is a session's part in what the server announces; package subscriptions
// listens for it. It has no state of its own.
type hearing struct{ *conversation }

var _ subscriptions.Session = hearing{}

// announce notes that the client is ready for unrelated messages and begins to
// listen for what the server announces. Clients that forget initialized are
// common, so any request but ping counts too. party is whose share of the
// listens it takes: one that got none asks again when it comes as somebody else, such as
// whom the server vouches for by then. What listens goes on with the credentials of whoever
// proves that the session is his: tokens are renewed while it lasts.
func (c hearing) announce(caller downstream.Caller) {
	party := caller.Tenant
	c.mu.Lock()
	unheard := c.seldomLocked().unheard
	first := !c.closed && (!c.announced || unheard != "" && unheard != party)
	c.announced = true
	if first && unheard != "" {
		c.rest.unheard = ""
	}
	newer := !caller.Unproven && caller.Authorization != c.authorization && caller.Authorization != ""
	c.mu.Unlock()
	if newer {
		c.renew(caller.Authorization)
	}
	if first && c.reaches() && !c.Server.Lists.Empty() {
		c.listen(party)
	}
}

// renew has the conversation listen with these credentials, when a listen is opened next, and the calls that
// it has under way go on with them: a task may outlive the token that it began with.
func (c hearing) renew(authorization string) {
	authorization = strings.Clone(authorization) // it is a part of all of a request's head
	c.mu.Lock()
	c.authorization = authorization
	resources := c.seldomLocked().resources
	c.mu.Unlock()
	if resources != nil {
		resources.Renew(authorization)
	}
	if c.Principal != "" {
		c.b.listens.Renew(c.Principal, authorization)
		for _, k := range c.table.underWay() {
			k.Reauthorize(authorization)
		}
	}
}

// listen has the conversation hear what the server announces, unless it is over.
func (c hearing) listen(party string) {
	c.mu.Lock()
	as := c.identityLocked(party)
	c.mu.Unlock()
	heard := c.b.listens.Join(c, as, c.Server.Lists)
	c.mu.Lock()
	closed := c.closed
	if !heard {
		c.restLocked().unheard = party
	}
	c.mu.Unlock()
	if closed { // meanwhile, so that Close had nothing to leave
		c.b.listens.Leave(c, c.Principal)
	}
}

// stop ends what the conversation hears, for good.
func (c hearing) stop() {
	c.mu.Lock()
	resources := c.seldomLocked().resources
	c.mu.Unlock()
	c.b.listens.Leave(c, c.Principal)
	if resources != nil {
		resources.Close()
	}
}

// identityLocked is in whose name the conversation listens. Those without a principal share one
// listen, which is nobody's.
func (c hearing) identityLocked(party string) subscriptions.Identity {
	authorization := c.authorization
	if c.Principal == "" {
		party, authorization = "", ""
	}
	return subscriptions.Identity{
		Principal: c.Principal, Party: party, Authorization: authorization, Version: c.Server.Version, ClientInfo: c.ClientInfo,
		Account: c.Account,
	}
}

// Announce implements subscriptions.Session (C.3).
func (c hearing) Announce(key, method string, params []byte) {
	if params, ok := c.Rules.Notification(method, params); ok {
		c.push.Push(key, downstream.Notification(method, params))
	}
}

// ElicitationOver implements subscriptions.Session: the word is for the call that
// the interaction belongs to (I-11), and for nobody when no call knows the id.
func (c hearing) ElicitationOver(id string) {
	for _, k := range c.table.underWay() {
		k.ElicitationOver(id)
	}
}

func serveSubscribe(c *conversation, _ context.Context, caller downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	uri, err := hearing{c}.subscribable(req)
	if err == nil {
		defer hearing{c}.subscriptions().InTurn(req.Link)()
		err = hearing{c}.explainSubscription(hearing{c}.subscriptions().Subscribe(caller.Tenant, caller.Authorization, uri))
	}
	if err == nil {
		c.changed()
	}
	return emptyObject, err
}

// serveUnsubscribe succeeds for a URI that is not subscribed, too.
func serveUnsubscribe(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	uri, err := hearing{c}.subscribable(req)
	if err == nil {
		defer hearing{c}.subscriptions().InTurn(req.Link)()
		hearing{c}.subscriptions().Unsubscribe(uri)
		c.changed()
	}
	return emptyObject, err
}

// subscribable returns the resource that a request is about, where any can be
// subscribed to.
func (c hearing) subscribable(req downstream.Request) (uri string, err *jsonrpc.Error) {
	if !c.Server.Subscribe || !c.reaches() {
		return "", ends.MethodNotFound(req.Method)
	}
	uri, ok := rawjson.Name(req.URI)
	if !ok {
		return "", fault.Params("uri is missing or no string")
	}
	return uri, nil
}

// subscriptions returns those of the session, made on first use.
func (c hearing) subscriptions() *subscriptions.Resources {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.restLocked()
	if rest.resources == nil {
		as := c.identityLocked("")
		as.Party = c.Tenant // nobody shares it
		rest.resources = c.b.listens.Resources(c, as, c.b.limits.Subscriptions)
		if c.closed {
			rest.resources.Close()
		}
	}
	return rest.resources
}

// explainSubscription words why a subscription failed (F.2).
func (c hearing) explainSubscription(err error) *jsonrpc.Error {
	var (
		tooMany *subscriptions.TooMany
		failure *upstream.Failure
		refused *jsonrpc.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooMany):
		return fault.Internal(err.Error(), fault.Limit("limits.subscriptions"))
	case errors.Is(err, subscriptions.ErrNoPlace):
		return fault.Internal(err.Error(), fault.Limit("limits.listens"))
	case errors.As(err, &failure):
		return ends.Describe(failure)
	case errors.As(err, &refused):
		_, refused = c.Rules.Error(mcp.MethodResourcesSubscribe, nil, refused)
		return refused
	case errors.Is(err, subscriptions.ErrNotAccepted):
		return fault.Params(err.Error())
	}
	return fault.Internal(err.Error())
}

// adoptResources subscribes to what the other side has subscribed to since before, and
// leaves what that has left. It does not wait for the server.
func (c hearing) adoptResources(before, theirs []string) {
	if !c.reaches() || slices.Equal(before, theirs) {
		return
	}
	gained, lost := without(theirs, before), without(before, theirs)
	resources := c.subscriptions()
	c.mu.Lock()
	authorization := c.authorization
	c.mu.Unlock()
	resources.Restore(authorization, gained, lost, func(err error) {
		c.b.log.Warn().Err(err).Int("resources", len(gained)).Msg("subscriptions that were made at another replica could not be taken up")
	})
}

// without returns what of these is not among others.
func without(these, others []string) []string {
	return slices.DeleteFunc(slices.Clone(these), func(uri string) bool { return slices.Contains(others, uri) })
}
