package mount

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/mcpbridge/bridge/internal/vouch"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// watchCredentials has clients' credentials count for what the server makes of them. Where
// they do not reach it, it vouches for nobody. It returns the scope of what is kept, and what ends
// with the mount.
func (o *Options) watchCredentials() (scope string, closed func()) {
	scope = o.nameKept()
	keeps := o.keepsCredentials()
	o.Bridge.OneIdentity, o.Legacy.CredentialsEndHere = keeps, keeps
	o.Bridge.ByToken = o.Behalf != nil && o.Behalf.Exchange != nil
	closed = func() {}
	if !keeps {
		if o.Servers == nil {
			o.Servers = vouch.NewServers(o.Legacy.Store, o.Bridge.Log)
		}
		o.vouched, closed = o.Servers.Open(scope)
	}
	o.Legacy.Vouched = o.vouched.Vouched
	return scope, closed
}

// signing puts the bridge's own credentials around a caller, if there are any.
func (o *Options) signing(caller upstream.Caller, v *verdicts) upstream.Caller {
	switch {
	case o.SignIn != nil:
		return o.SignIn.Caller(caller, v.serves)
	case o.Behalf != nil:
		return o.Behalf.Caller(caller)
	}
	return caller
}

// signingTransport does the same for what goes past the bridge.
func (o *Options) signingTransport(base http.RoundTripper) http.RoundTripper {
	switch {
	case o.SignIn != nil:
		return o.SignIn.Transport(base)
	case o.Behalf != nil:
		return o.Behalf.Transport(base)
	}
	return base
}

// vouching has a server's answers to clients' credentials noted.
func (o *Options) vouching(inner upstream.Caller) upstream.Caller {
	if o.vouched == nil {
		return inner
	}
	return &vouching{inner, o.vouched}
}

// vouching is a Caller whose outcomes are noted.
type vouching struct {
	upstream.Caller
	vouched *vouch.Credentials
}

var _ upstream.Wrapper = (*vouching)(nil)

// Unwrap implements upstream.Wrapper.
func (v *vouching) Unwrap() upstream.Caller { return v.Caller }

// Do implements upstream.Caller.
func (v *vouching) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	answer, err := v.Caller.Do(ctx, call, notify)
	switch {
	case err == nil && answer.Error == nil && v.vouched.Guards():
		v.vouched.Accepted(call.Authorization, thingOf(call.Method, call.Params, call.About.Name))
	case err != nil && unauthorized(err):
		v.vouched.Refused(call.Authorization, thingOf(call.Method, call.Params, call.About.Name))
	}
	return answer, err
}

// thingOf tells what a request asks for. name is the raw one where it is known.
func thingOf(method string, params, name []byte) vouch.Thing {
	switch {
	case name != nil:
	case method == mcp.MethodResourcesRead:
		name = rawjson.Get(params, "uri")
	default:
		name = rawjson.Get(params, "name")
	}
	text, _ := rawjson.NameBytes(name)
	return vouch.Of(method, text)
}

// unauthorized reports whether a server wants other credentials. 403 may be about what is
// asked for.
func unauthorized(err error) bool {
	failure, ok := errors.AsType[*upstream.Failure](err)
	return ok && failure.Status == http.StatusUnauthorized
}

// transport puts around the transport of what goes past the bridge what it needs.
func (o *Options) transport(base http.RoundTripper) http.RoundTripper {
	base = &suspectingTransport{o.signingTransport(base), o.away, o.other}
	if o.vouched == nil {
		return base
	}
	return &vouchingTransport{base, o.vouched}
}

// vouchingTransport is vouching for requests that are handed on as they are.
type vouchingTransport struct {
	base    http.RoundTripper
	vouched *vouch.Credentials
}

// RoundTrip implements http.RoundTripper.
func (v *vouchingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := v.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		v.await(r, resp)
	case http.StatusUnauthorized:
		v.vouched.Refused(r.Header.Get("Authorization"), wanted(r))
	}
	return resp, nil
}

// await has the response read on its way for whether it is a result: servers answer errors
// with status 200, too, and may find what is wrong with a request before they look at its
// token. It is read only where something would be learnt. Of what is compressed nothing is.
func (v *vouchingTransport) await(r *http.Request, resp *http.Response) {
	authorization := r.Header.Get("Authorization")
	if !v.vouched.Guards() || authorization == "" || resp.Header.Get("Content-Encoding") != "" {
		return
	}
	what := wanted(r)
	if !v.vouched.Learns(authorization, what) {
		return
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != eventStream && kind != jsonType {
		return
	}
	resp.Body = &replying{resp.Body, vouch.NewReply(kind == eventStream), func() { v.vouched.Accepted(authorization, what) }}
}

// The media types of responses to requests.
const (
	jsonType    = "application/json"
	eventStream = "text/event-stream"
)

// replying is a body whose reply is read while it passes. The verdict is in before its last
// bytes are with the client.
type replying struct {
	io.ReadCloser
	reply    *vouch.Reply
	accepted func()
}

// Read implements io.Reader.
func (r *replying) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.reply.Read(p[:n]) {
		r.accepted()
	}
	return n, err
}

// longest is how long a body may be to be read for what it asks for, in bytes. Of longer
// ones nothing is learnt.
const longest = 64 << 10

// wanted tells what a request asks for. Its body says so: its headers are the client's, and
// a server may not compare them.
func wanted(r *http.Request) (none vouch.Thing) {
	if r.Method != http.MethodPost || r.GetBody == nil || r.ContentLength < 0 || r.ContentLength > longest {
		return none
	}
	reader, err := r.GetBody()
	if err != nil {
		return none
	}
	defer func() { _ = reader.Close() }()
	body, err := io.ReadAll(io.LimitReader(reader, longest))
	if err != nil {
		return none
	}
	msg, err := jsonrpc.Parse(body)
	if err != nil || msg.Kind() != jsonrpc.Request {
		return none
	}
	return thingOf(msg.Method, msg.Params, nil)
}
