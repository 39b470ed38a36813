// Package subscriptions listens for what the server announces and hands it to the
// sessions that hear it. It owns every subscriptions/listen upstream: who shares
// one, how many there may be, when one is opened again, and the goroutine of each.
//
//	Hub.Join  ──▶ one listen for all sessions of a principal: list changes
//	Resources ──▶ one listen for each session that subscribed to resources, and, for a moment, the one before
//
// Locks: that of a Hub is taken alone. Resources hold theirs for one change of their set, for
// as long as that waits for the server, and within it the one of what the set is.
package subscriptions

import (
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// Session hears what the server announces. Its methods are called without locks, of each listen in
// order, and may be by several listens at a time.
type Session interface {
	// Announce takes a notification that belongs to no request. Of several that wait
	// for the client under one key only the newest counts.
	Announce(key, method string, params []byte)
	// ElicitationOver takes a server's word that a URL interaction with this id is over (I-11).
	ElicitationOver(id string)
}

// Identity is in whose name a listen is opened.
type Identity struct {
	Principal     string // as far as the server can tell clients apart
	Party         string // whose share of the listens it takes; empty: nobody's
	Authorization string
	Version       string // modern version to speak
	ClientInfo    []byte
	Account       *budget.Account // of the session that asks; may be nil
}

// listen builds a subscriptions/listen for a raw filter. Nothing can be asked on
// it, so it declares no capability.
func (as *Identity) listen(filter []byte) *upstream.Call {
	empty := []byte("{}")
	params := rawjson.Apply(nil, empty, rawjson.Edit{Name: "notifications", Value: filter})
	return &upstream.Call{
		Method: mcp.MethodListen,
		Params: translate.Params(nil, params, &translate.Envelope{
			Method: mcp.MethodListen, Version: as.Version, ClientInfo: as.ClientInfo, Capabilities: empty,
		}),
		Principal: as.Principal,
	}
}
