package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/sse"
)

const (
	mediaJSON = "application/json"
	mediaSSE  = "text/event-stream"

	// maxErrorBody bounds the body read with a status other than 200, in bytes.
	maxErrorBody = 256 << 10
	// maxAhead bounds the memory given to a body on the strength of its
	// announced length alone, in bytes.
	maxAhead = 1 << 20
)

// receive reads the outcome of one attempt.
func (c *HTTP) receive(ctx context.Context, req *request, x exchange, to sink) (*Answer, error) {
	if status := x.status(); status != 200 {
		ans, err := c.receiveRefusal(ctx, req, x)
		ans.Settle(c.opt.Fallback, status)
		if ans != nil {
			ans.refused, ans.HTTP = status == http.StatusBadRequest, x.version()
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

func (c *HTTP) receiveOK(ctx context.Context, req *request, x exchange, to sink) (*Answer, error) {
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
		c.opt.origin(), clip(media))
}

func (c *HTTP) receiveJSON(ctx context.Context, req *request, x exchange) (*Answer, error) {
	body, err := readBody(x, c.opt.MaxResponse, req.call.Held)
	if err != nil {
		putBuffer(body)
		x.abort()
		return nil, c.lost(ctx, 200, err)
	}
	ans, ours, err := c.parseBody(*body, req.id)
	release(x, ours)
	if err != nil || ans.Error != nil {
		putBuffer(body)
		return ans, err
	}
	ans.body = body
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
func (c *HTTP) parseBody(body []byte, id jsonrpc.ID) (ans *Answer, ours bool, err error) {
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

func (c *HTTP) malformed(err error) *Failure {
	f := refused(200, "the upstream %s sent a malformed message: %s", c.opt.origin(), clip(err.Error()))
	f.Err = err
	return f
}

// match returns the answer that msg is, if it is the response to id (E-38). An
// error without an id can only mean the one request of its POST. The result
// aliases the text of msg, an error does not. typ is the result's resultType.
func match(msg *jsonrpc.Message, typ []byte, id jsonrpc.ID) (*Answer, bool) {
	if msg.Kind() != jsonrpc.Response || msg.ID != id && (msg.ID != "" || msg.Error == nil) {
		return nil, false
	}
	if msg.Error != nil {
		msg.Error.Data = slices.Clone(msg.Error.Data)
	}
	return &Answer{Result: msg.Result, Error: msg.Error, typ: typeText(typ), typed: true}, true
}

// readBody reads a whole body into a buffer of its own: in one go when its
// length is announced.
func readBody(r exchange, limit int, held Held) (*[]byte, error) {
	n := r.length()
	if n > int64(limit) {
		return getBuffer(0), errTooLarge
	}
	if err := Charge(held, int(n)); err != nil {
		return getBuffer(0), err
	}
	if n < 0 {
		return readAll(getBuffer(0), &meter{Reader: r, held: held}, limit)
	}
	if n > maxAhead {
		return readAll(getBuffer(0), r, limit)
	}
	body := getBuffer(int(n))
	*body = (*body)[:n]
	_, err := io.ReadFull(r, *body)
	return body, err
}

// decoder reads events, and tells how much of them is held.
type decoder struct {
	sse.Decoder
	meter meter
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// receiveStream reads an SSE response up to the response message; whatever
// follows it is dropped.
func (c *HTTP) receiveStream(ctx context.Context, req *request, x exchange, to sink) (*Answer, error) {
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
		if err != nil {
			x.abort()
			return nil, c.malformed(err)
		}
		if ans, ok := match(&msg, typ, req.id); ok {
			release(x, !stray && msg.ID == req.id)
			return ans.own(), nil
		}
		stray = stray || msg.Kind() == jsonrpc.Response
		if c.interim(&msg, req, to) && to.idle != nil {
			news = true
		}
		d.meter.handedOn()
	}
}

// interim passes a notification on and reports whether it was one. Requests and
// responses to something else have no business on the stream and are ignored
// (E-38).
func (c *HTTP) interim(msg *jsonrpc.Message, req *request, to sink) bool {
	if msg.Kind() != jsonrpc.Notification {
		c.opt.Log.Debug().Str("method", req.call.Method).Stringer("kind", msg.Kind()).Msg("unexpected upstream message ignored")
		return false
	}
	if to.listen && !Subscribed(msg.Params, req.id) {
		c.opt.Log.Debug().Msg("notification of another subscription ignored")
		return false
	}
	if to.notify != nil {
		to.notify(*msg)
	}
	return true
}
