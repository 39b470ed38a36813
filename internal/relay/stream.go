package relay

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// request sends a request and hands everything on that its response says.
func (l *httpLine) request(ctx context.Context, o *outgoing) {
	resp, err := l.exchange(ctx, http.MethodPost, o.caller, o.text, "")
	if err != nil {
		l.fail(ctx, o.id, unanswered(err))
		return
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK && !l.opened(o, resp):
		l.fail(ctx, o.id, errSessionID)
	case resp.StatusCode == http.StatusOK && media(resp) == "text/event-stream":
		l.follow(ctx, o, resp)
	case resp.StatusCode == http.StatusOK && media(resp) == "application/json":
		l.whole(ctx, o, resp)
	default:
		l.refused(ctx, o, resp)
	}
}

// opened notes the session that the answer to initialize names, and reports whether that can be
// one.
func (l *httpLine) opened(o *outgoing, resp *http.Response) bool {
	session := resp.Header.Get(mcp.HeaderSessionID)
	if o.method != mcp.MethodInitialize || session == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if mcp.IsSessionID(session) {
		l.session = session
	}
	return l.session != ""
}

var errSessionID = errors.New("the session id of the server cannot be used: it is longer than 1 KiB, or not visible ASCII")

// whole hands a response on that is one message.
func (l *httpLine) whole(ctx context.Context, o *outgoing, resp *http.Response) {
	in := newIntake(resp.Body, l.server.opt.MaxMessage, l.account)
	defer in.close()
	body, err := in.whole()
	switch {
	case err != nil:
		l.fail(ctx, o.id, unread(err, errCut))
	case l.receive(o, body) != o.id:
		l.fail(ctx, o.id, errors.New("the server answered with another message than the response"))
	}
}

// receive hands a message on, and learns the version from the answer to
// initialize before anybody else does.
func (l *httpLine) receive(o *outgoing, text []byte) jsonrpc.ID {
	if o.method == mcp.MethodInitialize {
		if msg, err := jsonrpc.Parse(text); err == nil && msg.ID == o.id {
			if version, ok := versionOf(msg.Result); ok { // else Open refuses it
				l.mu.Lock()
				l.version = version
				l.mu.Unlock()
			}
		}
	}
	return l.inbox.Receive(text)
}

// maxRefusal bounds the body of a response that is none, in bytes, unless it may be an error of the server's.
const maxRefusal = 64 << 10

// refused tells the client of a response with another status or type.
func (l *httpLine) refused(ctx context.Context, o *outgoing, resp *http.Response) {
	why := refusal(resp)
	_, guarded := errors.AsType[*downstream.Refusal](why)
	own := media(resp) == "application/json" && !guarded // its body may be an error of the server's
	from, most := io.LimitReader(resp.Body, maxRefusal), maxRefusal
	if own {
		from, most = resp.Body, l.server.opt.MaxMessage
	}
	in := newIntake(from, most, l.account)
	defer in.close()
	body, err := in.whole()
	if own { // else the head says it all, whatever becomes of the page
		why = unread(err, why)
	}
	msg, err := jsonrpc.Parse(body)
	switch {
	case l.lost(resp):
		l.fail(ctx, o.id, errSession)
		l.inbox.Ended(errSessionLost)
	case guarded, err != nil, msg.Error == nil:
		l.fail(ctx, o.id, why)
	case msg.ID == o.id:
		l.inbox.Receive(body)
	default:
		l.fail(ctx, o.id, msg.Error)
	}
}

// fail ends a request without a response. Of one that was given up nobody wants
// to hear any more, and its id may be that of another one by now.
func (l *httpLine) fail(ctx context.Context, id jsonrpc.ID, why error) {
	if ctx.Err() == nil {
		l.inbox.Fail(id, why)
	}
}

// listen opens the stream of messages that belong to no request, once.
func (l *httpLine) listen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.listening {
		l.listening = true
		l.work.Go(l.attend)
	}
}

// attend reads that stream, and opens it again whenever it ends, as long as the
// server has one.
func (l *httpLine) attend() {
	at := place{wait: minWait}
	for failures := 0; l.ctx.Err() == nil; {
		began := time.Now()
		at.busy = 0
		resp, err := l.exchange(l.ctx, http.MethodGet, l.lastCaller(), nil, at.last)
		if err == nil {
			again := l.heard(resp, &at)
			_ = resp.Body.Close()
			if !again {
				return
			}
		}
		if failures++; time.Since(began) > maxWait {
			failures = 1
		}
		if !pause(l.ctx, max(min(at.wait<<min(failures-1, 5), maxWait), at.busy)) {
			return
		}
	}
}

// heard hands on what one GET brings, and reports whether to send another.
func (l *httpLine) heard(resp *http.Response, at *place) bool {
	switch {
	case resp.StatusCode == http.StatusOK && media(resp) == "text/event-stream":
		if _, err := l.events(resp, at, func(text []byte) bool { l.inbox.Receive(text); return false }); budget.Short(err) {
			l.server.opt.Log.Warn().Err(err).Msg("a message of the server was not taken in")
		}
		return true
	case l.lost(resp):
		l.inbox.Ended(errSessionLost)
		return false
	}
	at.busy = busyFor(resp)
	switch resp.StatusCode {
	case http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusNotImplemented: // it has none
		return false
	}
	// 409, while it has yet to notice that the one before is gone, or 401 until the next token.
	return resp.StatusCode >= http.StatusBadRequest
}

// media is the media type of a response.
func media(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}
