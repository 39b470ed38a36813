package legacy

import (
	"errors"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// webSocket serves a client over a WebSocket (E-33): one text frame is one
// message, the connection is the session. Origin and Host were checked, and the
// principal is settled, at the upgrade; credentials that lapse end it (E-34).
func (h *HTTP) webSocket(w http.ResponseWriter, r *http.Request) {
	if !h.channels.room() {
		h.refuseConnection(w)
		return
	}
	caller := h.caller(r)
	ws, err := transport.Upgrade(w, r, transport.WebSocketOptions{
		MaxMessage: h.opt.MaxBody, WriteTimeout: h.opt.WriteTimeout, Silence: 3 * h.opt.KeepAlive,
	})
	if err != nil {
		return // the response says why
	}
	c := newChannel(r.Context(), h.opt, h.backend, caller, observe.WebSocket, ws.Write)
	c.gate = h.gate
	c.lapse.watch(caller.Authorization)
	id := sessions.NewID()
	if !h.channels.add(id, c) {
		c.close(sessions.Closed)
		_ = ws.Close(transport.CloseGoingAway, "bridge is shutting down")
		return
	}
	defer h.channels.remove(id)
	defer h.keepAlive(c, func() error { return ws.Ping(pingTimeout) }).beat.Remove()
	go c.readFrames(ws)
	<-c.gone
	c.close(ErrDisconnected)
	switch {
	case errors.Is(c.err, sessions.Closed):
		_ = ws.Close(transport.CloseGoingAway, c.err.Error())
	case errors.Is(c.err, errLapsed):
		_ = ws.Close(transport.ClosePolicy, c.err.Error())
	default:
		_ = ws.Close(transport.CloseNormal, "")
	}
}

func (c *channel) readFrames(ws *transport.WebSocket) {
	for {
		frame, err := ws.Read()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			c.hangUp(err)
			return
		}
		c.receive(frame)
	}
}
