package streamable

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcpbridge/bridge/internal/buffers"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream"
)

const (
	mediaJSON = "application/json"
	mediaSSE  = "text/event-stream"

	// maxErrorBody bounds the body read with a status other than 200, in bytes, unless it may be
	// an error of the server's.
	maxErrorBody = 256 << 10
)

// receive reads the outcome of one attempt.
func (c *Client) receive(ctx context.Context, req *request, x exchange, to sink) (*upstream.Answer, error) {
	if status := x.status(); status != 200 {
		ans, err := c.receiveRefusal(ctx, req, x)
		ans.Settle(c.opt.Fallback, status)
		if ans != nil {
			ans.Refused, ans.HTTP = status == http.StatusBadRequest, x.version()
		}
		return ans, err
	}
	ans, err := c.receiveOK(ctx, req, x, to)
	if ans != nil {
		ans.HTTP = x.version()
	}
	ans.Settle(c.opt.Fallback, 200)
	return ans, err
}

func (c *Client) receiveOK(ctx context.Context, req *request, x exchange, to sink) (*upstream.Answer, error) {
	switch x.media() {
	case mediaJSON:
		return c.receiveJSON(ctx, req, x)
	case mediaSSE:
		return c.receiveStream(ctx, req, x, to)
	}
	media := x.media()
	x.abort()
	if media == "" {
		return nil, refused(200, "the upstream %s answered without a content type", c.opt.origin())
	}
	return nil, refused(200, "the upstream %s answered with %s instead of JSON; is the URL that of its MCP endpoint?",
		c.opt.origin(), upstream.Clip(media))
}

func (c *Client) receiveJSON(ctx context.Context, req *request, x exchange) (*upstream.Answer, error) {
	body, err := readBody(x, c.opt.MaxResponse, req.call.Held)
	if err != nil {
		buffers.Put(body)
		x.abort()
		return nil, c.lost(ctx, 200, err)
	}
	ans, ours, err := c.parseBody(*body, req.id)
	release(x, ours)
	if err != nil || ans.Error != nil {
		buffers.Put(body)
		return ans, err
	}
	ans.Owns(body)
	return ans, nil
}

// release ends an exchange whose body was read. Only a response that names our
// request proves that the connection is where we think it is: after any other
// the next response could be the one to this request, and go to the next caller.
func release(x exchange, ours bool) {
	if ours {
		x.finish()
	} else {
		x.abort()
	}
}

// parseBody reads the response to the request id out of a JSON body. ours reports
// whether it names that request.
func (c *Client) parseBody(body []byte, id jsonrpc.ID) (ans *upstream.Answer, ours bool, err error) {
	msg, typ, err := jsonrpc.ParseResponse(body, id)
	if err != nil {
		return nil, false, c.malformed(err)
	}
	ans, ok := match(&msg, typ, id)
	if !ok {
		f := refused(200, "the upstream %s answered a different request or sent no response", c.opt.origin())
		f.Rule = "E-38"
		return nil, false, f
	}
	return ans, msg.ID == id, nil
}

func (c *Client) malformed(err error) *upstream.Failure {
	f := refused(200, "the upstream %s sent a malformed message: %s", c.opt.origin(), upstream.Clip(err.Error()))
	f.Err = err
	return f
}

// match returns the answer that msg is, if it is the response to id (E-38). An
// error without an id can only mean the one request of its POST. The result
// aliases the text of msg, an error does not. typ is the result's resultType.
func match(msg *jsonrpc.Message, typ []byte, id jsonrpc.ID) (*upstream.Answer, bool) {
	if msg.Kind() != jsonrpc.Response || msg.ID != id && (msg.ID != "" || msg.Error == nil) {
		return nil, false
	}
	return upstream.NewAnswer(msg, typ), true
}

// decoder reads events, and tells how much of them is held.
type decoder struct {
	sse.Decoder
	meter meter
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// receiveStream reads an SSE response up to the response message; whatever
// follows it is dropped.
func (c *Client) receiveStream(ctx context.Context, req *request, x exchange, to sink) (*upstream.Answer, error) {
	d := decoders.Get().(*decoder)
	d.meter = meter{Reader: x, held: req.call.Held, events: &d.Decoder}
	d.Reset(&d.meter, c.opt.MaxResponse)
	defer func() {
		d.meter = meter{}
		d.Reset(nil, 0)
		decoders.Put(d)
	}()
	for news, stray := false, false; ; {
		if news && !d.Ready() && !x.arriving() {
			to.idle()
			news = false
		}
		ev, err := d.Next()
		if err != nil {
			x.abort()
			if errors.Is(err, sse.ErrTooLarge) {
				err = errTooLarge
			}
			return nil, c.lost(ctx, 200, err)
		}
		if len(ev.Data) == 0 {
			continue // E-36: priming and keep-alive events are no messages
		}
		msg, typ, err := jsonrpc.ParseResponse(ev.Data, req.id)
		if err != nil && ev.Type != "message" {
			continue // E-36: a keep-alive of the server's own, say
		}
		if err != nil {
			x.abort()
			return nil, c.malformed(err)
		}
		if ans, ok := match(&msg, typ, req.id); ok {
			release(x, !stray && msg.ID == req.id)
			return ans.Detach(), nil
		}
		stray = stray || msg.Kind() == jsonrpc.Response
		if c.interim(&msg, req, to) && to.idle != nil {
			news = true
		}
	}
}

// interim passes a notification on and reports whether it was one. Requests and
// responses to something else have no business on the stream and are ignored
// (E-38).
func (c *Client) interim(msg *jsonrpc.Message, req *request, to sink) bool {
	if msg.Kind() != jsonrpc.Notification {
		c.opt.Log.Debug().Str("method", req.call.Method).Stringer("kind", msg.Kind()).Msg("unexpected upstream message ignored")
		return false
	}
	if to.listen && !upstream.Subscribed(msg.Params, req.id) {
		c.opt.Log.Debug().Msg("notification of another subscription ignored")
		return false
	}
	if to.notify != nil {
		to.notify(*msg)
	}
	return true
}
