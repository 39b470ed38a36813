package signin

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Account says how the bridge signs in to the server with an account of its own.
type Account struct {
	Agent *authorize.Agent // closed by whoever made it
	// Wait is how long a request waits for a person, in the hope that its client
	// does so too.
	Wait time.Duration
	// Heartbeat is how often such a client hears that its request is alive.
	Heartbeat time.Duration
}

// Caller returns next with the account's credentials. serves is asked before a request of
// the bridge itself leaves with them, and returns why it may not; a server that nobody saw
// before the sign-in may prove to be one that it is not for.
func (a *Account) Caller(next upstream.Caller, serves func(context.Context) error) upstream.Caller {
	return &signing{next, *a, serves}
}

// signing is a Caller that sends the bridge's own credentials, and gets others when
// the server refuses them. What a server refuses it has not executed, so the request
// is sent again as it was.
type signing struct {
	upstream.Caller
	Account
	serves func(context.Context) error
}

var _ upstream.Signer = (*signing)(nil)

// Unwrap implements upstream.Wrapper.
func (s *signing) Unwrap() upstream.Caller { return s.Caller }

// Sign implements upstream.Signer.
func (s *signing) Sign(ctx context.Context, call *upstream.Call) (*upstream.Call, error) {
	if call.Method == mcp.MethodDiscover {
		header, _ := s.credentials(ctx, call, time.Now()) // without, the server says that it wants credentials
		return with(call, header), nil
	}
	header, err := s.Agent.Authorization(ctx)
	return with(call, header), err
}

// maxSignIns bounds how often credentials are got for one request: scopes that come
// one by one, or a server that refuses whatever it gets.
const maxSignIns = 3

// Do implements upstream.Caller.
func (s *signing) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	call, invited, began, err := s.answered(call)
	if err != nil {
		return nil, signInFailure(ctx, err)
	}
	for tries := 0; ; tries++ {
		header, err := s.credentials(ctx, call, began)
		if err != nil && call.Method != mcp.MethodDiscover { // which tells that the server is there, whoever asks
			return nil, signInFailure(ctx, err)
		}
		if err := s.allows(ctx, call, header); err != nil {
			return nil, signInFailure(ctx, err)
		}
		answer, err := s.Caller.Do(ctx, with(call, header), notify)
		refused, ok := s.refusal(ctx, call, header, err)
		if !ok {
			s.learn(call, answer)
			return answer, err
		}
		if tries == maxSignIns {
			return nil, signInFailure(ctx, errTooOften)
		}
		page, err := s.obtain(ctx, call, refused, invited, began, notify)
		switch {
		case page != nil:
			return page, nil
		case err == nil:
		case call.Method == mcp.MethodDiscover && ctx.Err() == nil:
			return s.introduce(), nil
		default:
			return nil, signInFailure(ctx, err)
		}
	}
}

// credentials returns what the agent has, or gets without asking anybody.
func (s *signing) credentials(ctx context.Context, call *upstream.Call, began time.Time) (string, error) {
	waiting, cancel := context.WithTimeout(ctx, s.patience(call, began))
	defer cancel()
	return s.Agent.Authorization(waiting)
}

// obtain has the agent get others in the place of those that were refused. page is the answer to a call whose client is to show a
// person where to sign in.
func (s *signing) obtain(ctx context.Context, call *upstream.Call, refused authorize.Refusal, invited reply, began time.Time, notify func(jsonrpc.Message)) (page *upstream.Answer, err error) {
	waiting, cancel := context.WithTimeout(ctx, s.patience(call, began))
	defer cancel()
	switch {
	case call.Method == mcp.MethodDiscover || call.Method == mcp.MethodListen: // which nobody waits for
		return nil, s.Agent.Quietly(waiting, refused)
	case invited.silent:
		return nil, s.Agent.Invite(waiting, refused) // whose page the client is told of
	case !invited.agreed && canShow(call):
		if err = s.Agent.Invite(waiting, refused); isPage(err) {
			return invitation(err, began, s.left(began)), nil
		}
		return nil, err
	}
	refused.Shown = invited.agreed
	return nil, s.await(waiting, call, refused, notify)
}

// glance is how long a discover waits for credentials, each time. A session is opened behind it, and what the server offers may be looked
// at later: clients give up an initialize that takes long, and do not repeat it.
const glance = 2 * time.Second

// patience is how long a call that began then waits for credentials.
func (s *signing) patience(call *upstream.Call, began time.Time) time.Duration {
	if call.Method == mcp.MethodDiscover {
		return min(glance, s.Wait)
	}
	return s.left(began)
}

// allows returns why a call of the bridge must not be made: the server, which could not be
// seen when its session began, may be a legacy one, that would take it for one of its own.
func (s *signing) allows(ctx context.Context, call *upstream.Call, header string) error {
	if header == "" || call.Method == mcp.MethodDiscover || call.AsIs {
		return nil
	}
	return s.serves(ctx)
}

var errTooOften = errors.New("the server refused the bridge again after it had signed in; its operator should look at the scopes that it asks for")

// passes is when an authorization server that has a problem is looked at again at the earliest, by a call that can wait.
const passes = time.Second

// with returns a call with credentials.
func with(call *upstream.Call, header string) *upstream.Call {
	own := *call
	own.Authorization = header
	return &own
}

// refusal returns the refusal behind a failure, if there is one that the agent has to look at. A server of HTTP+SSE may guard its
// stream alone, and say to whatever is posted that there is nothing.
func (s *signing) refusal(ctx context.Context, call *upstream.Call, header string, err error) (authorize.Refusal, bool) {
	failure, ok := errors.AsType[*upstream.Failure](err)
	if ok && failure.Cause == upstream.NotModern && (header == "" || call.Method == mcp.MethodDiscover) {
		looking, cancel := context.WithTimeout(ctx, s.Wait)
		defer cancel()
		err = upstream.LegacyOffer(looking, s.Caller, with(call, header)).Refused
	}
	return refusedCredentials(err, header)
}

// refusedCredentials returns the refusal that a failure is, if it is one that the
// agent has to look at.
func refusedCredentials(err error, header string) (authorize.Refusal, bool) {
	failure, ok := errors.AsType[*upstream.Failure](err)
	if !ok || failure.Cause != upstream.Unauthorized {
		return authorize.Refusal{}, false
	}
	return authorize.Refusal{Authorization: header, Status: failure.Status, Challenge: failure.Challenge}, true
}

// signInFailure is what the request of a person comes to who has to sign in first.
func signInFailure(ctx context.Context, err error) *upstream.Failure {
	if ctx.Err() != nil {
		return &upstream.Failure{Cause: upstream.Canceled, Err: context.Cause(ctx), Detail: "the call was cancelled while it waited for a sign-in"}
	}
	f := &upstream.Failure{Cause: upstream.SignIn, Err: err, Detail: err.Error()}
	if failed, ok := errors.AsType[*authorize.Failure](err); ok && failed.Passing {
		f.RetryAfter = passes
	}
	return f
}

// await waits for credentials, and keeps the client of the request from giving up
// meanwhile: to it this is progress like any other.
func (s *signing) await(ctx context.Context, call *upstream.Call, refused authorize.Refusal, notify func(jsonrpc.Message)) error {
	done := make(chan error, 1)
	go func() { done <- s.Agent.Renew(ctx, refused) }() // which ends with ctx
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	for count := 1; ; count++ {
		select {
		case err := <-done:
			return err
		case <-beat.C:
			s.beat(call, count, notify)
		}
	}
}

// beat makes a progress notification out of nothing. Its steps are small, so that
// the server's own count goes on from there.
func (s *signing) beat(call *upstream.Call, count int, notify func(jsonrpc.Message)) {
	token := rawjson.Get(rawjson.Get(call.Params, "_meta"), "progressToken")
	if notify == nil || token == nil {
		return
	}
	value := append([]byte("0.00"), byte('0'+min(count, 9)))
	notify(jsonrpc.Message{Method: mcp.NotificationProgress, Params: rawjson.Apply(nil, []byte("{}"),
		rawjson.Edit{Name: "progressToken", Value: token}, rawjson.Edit{Name: "progress", Value: value},
		rawjson.Edit{Name: "message", Value: []byte(`"Waiting for you to sign in"`)})})
	if call.Idle != nil {
		call.Idle()
	}
}

// lookEvery is how often a subscription that waits for a sign-in looks whether
// another process has one.
const lookEvery = 30 * time.Second

// Listen implements upstream.Caller. A subscription waits for a sign-in, but never
// asks for one.
func (s *signing) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	for {
		signedIn := s.Agent.SignedIn()
		header, err := s.Agent.Authorization(ctx)
		if err != nil {
			return signInFailure(ctx, err)
		}
		if err := s.allows(ctx, call, header); err != nil {
			return signInFailure(ctx, err)
		}
		err = s.Caller.Listen(ctx, with(call, header), notify)
		refused, ok := refusedCredentials(err, header)
		if !ok {
			return err
		}
		if s.Agent.Quietly(ctx, refused) == nil {
			continue
		}
		look := time.NewTimer(lookEvery)
		select {
		case <-signedIn:
		case <-look.C:
		case <-ctx.Done():
			return signInFailure(ctx, ctx.Err())
		}
		look.Stop()
	}
}

// guessed is the member of a discover result that the bridge made up.
const guessed = "mcp-bridge/guessed"

// Guessed reports whether a discover result is none of the server's: it refuses whoever
// asks it until somebody has signed in.
func Guessed(discover []byte) bool { return rawjson.Has(discover, guessed) }

// noteDiscover names what is kept of the server for a start without a login.
const noteDiscover = "discover"

// learn keeps what the server says of itself.
func (s *signing) learn(call *upstream.Call, answer *upstream.Answer) {
	if call.Method != mcp.MethodDiscover || answer == nil || answer.Error != nil || bytes.Equal(answer.Result, s.Agent.Noted(noteDiscover)) {
		return
	}
	_ = s.Agent.Note(noteDiscover, answer.Result) // without it clients see less until they are signed in
}

// introduce answers a discover that the server refused, so that sessions can open
// before anybody has signed in: as the server did last time, else by what every
// server may have. It is forgotten with the sign-in.
func (s *signing) introduce() *upstream.Answer {
	if kept := s.Agent.Noted(noteDiscover); kept != nil && rawjson.Validate(kept) == nil && rawjson.KindOf(kept) == rawjson.Object {
		return &upstream.Answer{Result: rawjson.Apply(nil, kept, rawjson.Edit{Name: "ttlMs", Value: []byte("0")}, rawjson.Edit{Name: guessed, Value: []byte("true")})}
	}
	return &upstream.Answer{Result: []byte(`{"resultType":"complete","supportedVersions":["` + string(mcp.V20260728) + `"],` +
		`"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}},` +
		`"serverInfo":{"name":"mcp-bridge","version":"1"},` +
		`"instructions":"The server wants its user to sign in first. What it offers is known afterwards.",` +
		`"ttlMs":0,"cacheScope":"private","` + guessed + `":true}`)}
}
