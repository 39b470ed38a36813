package call

import (
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

// notify delivers an interim notification of the round in flight on the
// client's stream (section C.1). Nothing follows the response (C-11).
func (k *round) notify(msg jsonrpc.Message) {
	if !k.out.Interactive() {
		return
	}
	switch msg.Method {
	case mcp.NotificationProgress:
		speaker{k.Call}.say(mcp.NotificationProgress, func() ([]byte, bool) { return k.progressLocked(msg.Params) })
		return
	case mcp.NotificationMessage:
		if !k.wantsLog(msg.Params) {
			return
		}
	case mcp.NotificationElicitationComplete:
		id, _ := rawjson.Name(rawjson.Get(msg.Params, "elicitationId"))
		k.ElicitationOver(id)
		return
	}
	if params, ok := k.client.Rules.Notification(msg.Method, msg.Params); ok {
		speaker{k.Call}.say(msg.Method, func() ([]byte, bool) { return params, k.flow.State == mrtr.Sending })
	}
}

// progressLocked puts progress under the client's token. There may be many of these:
// what they tell lives in memory that the next one uses again.
func (k *round) progressLocked(params []byte) (told []byte, ok bool) {
	from := k.client.Rules.Progress(params)
	if k.token == nil || string(from.Token) != string(k.token) {
		return nil, false
	}
	value, total, ok := k.flow.Count(from.Value, from.Total, mrtr.Moment{Now: time.Now()}) // it restarts the round's clock, not the call's
	if !ok {
		return nil, false
	}
	k.told = from.AppendTo(k.told[:0], k.flow.Progress.Token, value, total)
	return k.told, true
}

// wantsLog applies the session's present level to a message that the server
// filtered by the level at the time of the request (C-6, C-7).
func (k *round) wantsLog(params []byte) bool {
	if k.flow.Level == "" {
		return false
	}
	severity, _ := rawjson.Text(rawjson.Get(params, "level"))
	return mcp.Severity(severity) >= mcp.Severity(k.client.Session.Level())
}
