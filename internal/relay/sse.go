package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// SSE is a Server that speaks HTTP+SSE, the transport of 2024-11-05. Each client has a
// stream of the server's.
type SSE struct{ http *HTTP }

// SSE returns the server as one that speaks that transport. It sends over the same
// connections, and is closed with them.
func (s *HTTP) SSE() *SSE { return &SSE{s} }

// Connect implements Server. A stream that cannot be opened fails the client's
// initialize.
func (s *SSE) Connect(caller downstream.Caller, inbox Inbox) (Line, error) {
	l := &sseLine{server: s.http, inbox: inbox, opened: make(chan struct{})}
	l.courier = newCourier(l, caller.Account)
	l.work.Go(func() { l.attend(caller) })
	return l, nil
}

// sseLine is a stream of the server and the endpoint to which its client posts:
//
//	GET  ──▶ event: endpoint    where to post
//	     ◀── event: message     every message of the server, responses included
//	POST ──▶ 202
//
// The stream is the session. The transport has no way to resume it: another GET would
// open another session, which knows nothing of what this client did. So its end ends the
// client's session, and what was under way is answered with an error and not sent again.
type sseLine struct {
	*courier
	server *HTTP
	inbox  Inbox

	opened   chan struct{} // closed when one of the following is set
	endpoint string
	failure  error
}

// attend opens the stream and hands on what it brings, until it ends.
func (l *sseLine) attend(caller downstream.Caller) {
	resp, in, err := l.open(caller)
	l.failure = err
	close(l.opened)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	defer l.cancel()
	defer in.close()
	for {
		event, err := in.next()
		switch {
		case l.ctx.Err() != nil:
			return
		case err != nil: // for want of memory, too: to whom the message is nobody can tell
			l.inbox.Ended(unread(err, errStream))
			return
		case event.Type == "message" && len(event.Data) > 0:
			l.inbox.Receive(event.Data)
		}
		in.handedOn()
	}
}

var errStream = errors.New("the server's stream has ended, and with it the session; whether a call under way was executed is not known")

// open opens the stream and waits for its first event.
func (l *sseLine) open(caller downstream.Caller) (*http.Response, *intake, error) {
	resp, err := l.server.exchange(l.ctx, http.MethodGet, l.server.opt.URL.String(), caller, nil, nil)
	if err != nil {
		return nil, nil, unanswered(err)
	}
	in := newIntake(resp.Body, l.server.opt.MaxMessage, caller.Account)
	l.endpoint, err = l.server.endpoint(resp, in)
	in.handedOn()
	if err != nil {
		in.close()
		_ = resp.Body.Close()
		return nil, nil, err
	}
	return resp, in, nil
}

// maxEndpoint bounds the address to which a client's messages are posted, in bytes: it is kept for
// as long as the session lasts.
const maxEndpoint = 8 << 10

// endpoint reads from the beginning of a stream where messages are to be posted.
func (s *HTTP) endpoint(resp *http.Response, in *intake) (string, error) {
	switch {
	case resp.StatusCode != http.StatusOK:
		return "", refusal(resp)
	case media(resp) != "text/event-stream":
		return "", errors.New("the server does not open a stream of HTTP+SSE")
	}
	event, err := in.next()
	if err != nil || event.Type != "endpoint" {
		return "", errors.New("the server's stream does not begin with an endpoint")
	}
	if len(event.Data) > maxEndpoint {
		return "", errors.New("the server names an endpoint of more than 8 KiB")
	}
	at, err := resp.Request.URL.Parse(strings.TrimSpace(string(event.Data)))
	if err != nil || !sameOrigin(at, s.opt.URL) {
		return "", errors.New("the server names an endpoint on another origin than its own, which gets no messages")
	}
	return at.String(), nil
}

// sameOrigin reports whether what is sent to a goes to where b is: credentials go
// nowhere else, whatever a server says.
func sameOrigin(a, b *url.URL) bool { return a.User == nil && http1.SameOrigin(a, b) }

// request implements carrier. The response comes on the stream.
func (l *sseLine) request(ctx context.Context, o *outgoing) {
	if err := l.post(ctx, o); err != nil && ctx.Err() == nil {
		l.inbox.Fail(o.id, err)
	}
}

// hand implements carrier.
func (l *sseLine) hand(ctx context.Context, o *outgoing) error { return l.post(ctx, o) }

// untaken implements carrier.
func (l *sseLine) untaken(o *outgoing, why error) { l.server.untaken(l.inbox, o, why) }

// post sends a message once the endpoint is known. Of a request that fails nobody knows
// whether it was executed: it is not sent again.
func (l *sseLine) post(ctx context.Context, o *outgoing) error {
	select {
	case <-l.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.failure != nil {
		return l.failure
	}
	resp, err := l.server.exchange(ctx, http.MethodPost, l.endpoint, o.caller, o.text, nil)
	if err != nil {
		return unanswered(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return refusal(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // which leaves a connection to use again
	if err == nil && o.kind == jsonrpc.Request && media(resp) == "application/json" {
		l.atOnce(o, text)
	}
	return nil
}

// atOnce takes what answers a request where it was posted. Who signs in to the server does that when it cannot, and
// the request has not reached the stream then.
func (l *sseLine) atOnce(o *outgoing, text []byte) {
	if msg, err := jsonrpc.Parse(text); err == nil && msg.Kind() == jsonrpc.Response && msg.ID == o.id {
		l.inbox.Receive(text)
	}
}
