package legacy

import (
	"errors"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// webSocket serves a client over a WebSocket (E-33): one text frame is one
// message, the connection is the session. Origin and Host were checked, and the
// principal is settled, at the upgrade; credentials that lapse end it (E-34).
func (h connections) webSocket(w http.ResponseWriter, r *http.Request) {
	caller := h.sessions.Caller(r)
	account, err := session.OpenAccount(h.opt.Memory, caller.Tenant, web.HeadCost(r.Header))
	if err != nil {
		h.admission.writeShort(w, r, nil, "", err)
		return
	}
	if !h.channels.Room(account) {
		account.Close()
		h.refusals.refuseConnection(w)
		return
	}
	ws, err := transport.Upgrade(w, r, transport.WebSocketOptions{
		MaxMessage: h.opt.MaxBody, WriteTimeout: h.opt.WriteTimeout, Silence: 3 * h.opt.KeepAlive, Account: account,
	})
	if err != nil {
		account.Close()
		return // the response says why
	}
	id := sessions.NewID()
	c := channel.New(r.Context(), h.channelOptions(r, id, account), h.backend, caller, observe.WebSocket, ws.Write)
	c.WatchCredentials(h.opt.term(caller.Authorization))
	if !h.channels.Add(id, c) {
		c.Close(sessions.Closed)
		_ = ws.Close(transport.CloseGoingAway, h.farewell().Error())
		return
	}
	defer h.channels.Remove(id)
	defer c.KeepAlive(h.pings, h.silence(), func() error { return ws.Ping(web.PingTimeout) })()
	go c.ReadFrom(ws.Read)
	<-c.Gone()
	c.Leave()
	switch err := c.Err(); {
	case errors.Is(err, sessions.Closed), errors.Is(err, errRetired):
		_ = ws.Close(transport.CloseGoingAway, err.Error())
	case errors.Is(err, channel.ErrLapsed):
		_ = ws.Close(transport.ClosePolicy, err.Error())
	case errors.Is(err, downstream.ErrOperator):
		_ = ws.Close(transport.CloseNormal, err.Error())
	default:
		_ = ws.Close(transport.CloseNormal, "")
	}
}
