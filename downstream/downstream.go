// Package downstream is the contract between the rooms that speak with clients
// and the rooms that answer them: who a message acts for, what answers it, where
// a reply goes, what can be pushed, and why a session ends.
//
// Package legacy calls it, on behalf of every transport. Packages bridge and
// internal/relay implement Backend and Conversation. It holds types only; nobody's
// state lives here. Messages cross it with their parts apart ([Message], [Request]):
// nobody parses what the room before has just written.
//
//	legacy ──▶ Backend ──▶ Conversation.Serve(caller, request, Reply)
//	       ◀── Reply.Send, Finish, Refuse, Abandon
//	       ◀── Pusher.Push
package downstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
)

// ErrStopping is the cause of a conversation's end when the bridge stops. Clients are
// still there, and are told.
var ErrStopping error = sessions.Closed

// ErrOutdated is the cause of an end that the server has brought about: it is another one now.
var ErrOutdated error = sessions.Outdated

// ErrOperator is the cause of an end that who runs the bridge has brought about, and ErrCallEnded
// what the calls then end with.
var (
	ErrOperator  error = sessions.Dismissed
	ErrCallEnded       = fmt.Errorf("the call was %w", ErrOperator)
)

// EndOfCalls returns what the calls of a conversation end with that ends for this cause: otherwise, unless who runs the bridge wants it.
func EndOfCalls(cause, otherwise error) error {
	if errors.Is(cause, ErrOperator) {
		return ErrCallEnded
	}
	return otherwise
}

// Unknown says of a call that ends for this cause, and that its server has or may have, that nobody knows what became of it.
func Unknown(cause error) error {
	return fmt.Errorf("%w; whether the call was executed is not known", cause)
}

// ErrElsewhere is the cause of the end of a session whose record is gone.
var ErrElsewhere error = sessions.Elsewhere

// Audible reports whether a client may still hear why its conversation ended: it
// neither ended it itself nor went away.
func Audible(cause error) bool {
	end, ok := errors.AsType[sessions.Cause](cause)
	return ok && end != sessions.Removed && end != sessions.Rested
}

// MayGoOn reports whether a conversation that ended here may be brought back.
func MayGoOn(cause error) bool {
	end, ok := errors.AsType[sessions.Cause](cause)
	return ok && (end == sessions.Closed || end == sessions.Evicted || end == sessions.Rested)
}

// Caller says who a message from downstream acts for.
type Caller struct {
	// Principal names the identity behind the request in an opaque form; "" is
	// anonymous (H-6).
	Principal string
	// Tenant is whose share of what is scarce the caller takes: its principal's, or, where
	// it has none, that of the address that it comes from. "" is nobody's in particular.
	Tenant string
	// Authorization is the request's header of that name; "" when absent.
	Authorization string
	// Session is the id of the session that the message belongs to, which is a
	// credential; "" without one that has an id.
	Session string
	// Account is what the caller's session holds, or what its requests without one do.
	// Whoever keeps something for the caller charges it there. It may be nil.
	Account *budget.Account
	// Paid is what an answer is charged to; nil: it is not. Whoever keeps the answer takes that over
	// before Answer returns (budget.Hold.Inherit).
	Paid *budget.Hold
	// Rotation is not 0 where Authorization may take the place of what the session is bound
	// to: then Pusher.Accepted is to be told once the upstream has answered a request that
	// carried it (H-6). It numbers the binding that it would replace.
	Rotation uint64
	// Also has the principals of the newest credentials that have taken the place of others in
	// the session. A call that was made with such before, or that took the session over, is its
	// owner's (Owns), whose Principal stays that of who opened it.
	Also []string
	// Unproven says that the session is bound to other credentials, so that whoever brings
	// these may know no more than its id: what they have under way counts apart, and makes
	// no room at the owner's expense.
	Unproven bool
	// Transport is how the client speaks with the bridge.
	Transport observe.Transport
	// HTTP is the version in which the request came; none for connections.
	HTTP observe.HTTP
	// Header holds the HTTP request's headers. It must not be changed and may
	// be nil.
	Header http.Header
}

// Owns reports whether who was known by this principal is the caller. Where nobody was known it
// is everybody (D-I11).
func (c *Caller) Owns(principal string) bool {
	return principal == c.Principal || principal == "" || slices.Contains(c.Also, principal)
}

// Resumes reports whether the caller may fetch what a call says that was made by this principal. What
// nobody in particular began is for those only to whom the session belongs.
func (c *Caller) Resumes(principal string) bool {
	return c.Owns(principal) && !(c.Unproven && principal == "")
}

// Backend answers what clients ask.
type Backend interface {
	// Open serves an initialize request. The result is the
	// InitializeResult. An error is a *jsonrpc.Error for the client, a *Refusal
	// when the upstream demands authorization, or anything else, of which
	// the client only learns that the bridge failed. The pusher works until the
	// conversation is closed, also before Open returns.
	Open(ctx context.Context, caller Caller, req jsonrpc.Message, push Pusher) (conv Conversation, result []byte, err error)
	// Stateless serves the messages of a request without a session.
	Stateless(caller Caller, version mcp.Version) Conversation
	// Modern serves requests of the modern era, or is nil when they are
	// refused.
	Modern() http.Handler
	// Connected serves the requests of the modern era that come over one connection and
	// belong to no session, or is nil when they are refused. They end with the context
	// that each is served with: without an answer where the cause is ErrCancelled.
	Connected() Conversation
	// Restore opens a conversation again from its Record, in this process or another.
	// caller is who it is bound to: with its credentials the server is asked what it offers, or,
	// where the server accepts them no longer, with those of by, who needs it now. The error is
	// that of Open, ErrForeignEra where the record is of no more use, or ErrGone where it cannot be
	// read or is a newer bridge's, and to be left alone.
	Restore(ctx context.Context, caller, by Caller, record []byte, push Pusher) (Conversation, error)
	// Due returns when something is due to a call of which nobody takes note meanwhile, by its record
	// (Conversation.Resume). The error is that the record cannot be read.
	Due(flow []byte) (time.Time, error)
	// Relayer takes requests that are a server's of the clients' own era, or is nil
	// when there is none.
	Relayer() Relayer
}

// Conversation is one client's session as the backend sees it. Its methods are
// safe for concurrent use.
type Conversation interface {
	// Version is the negotiated version.
	Version() mcp.Version
	// Serve handles one request. It returns when the request was answered or
	// suspended; out gets exactly one of Finish, Refuse (when it reports true)
	// and Abandon, possibly later and from another goroutine (D-I13). The work
	// belongs to the session and outlives the HTTP request, so ctx only carries
	// values (E-12).
	Serve(ctx context.Context, caller Caller, req Request, out Reply)
	// Orderly reports that Serve only hands requests on, those of whoever opened the session: on
	// a connection it is called in the order in which they came.
	Orderly() bool
	// Notify takes a notification from the client.
	Notify(caller Caller, msg jsonrpc.Message)
	// Answer takes the client's response to a server request. An id that is not or no
	// longer open is ignored (C.9), and the error is ErrNotHere: it may be open in another
	// replica. An error of package budget says that the answer cannot be kept beside what
	// its session holds, and was not taken: the question stays open.
	Answer(caller Caller, msg jsonrpc.Message) error
	// Remind asks questions again that have left, under their ids, as far as they are open: the
	// client has not got them. It does not wait.
	Remind(questions []string)
	// Knows reports whether a request with this id is under way here that the caller may cancel.
	Knows(caller Caller, id jsonrpc.ID) bool
	// Owns reports whether the caller may answer and cancel a call, by its record (Flows).
	Owns(caller Caller, flow []byte) bool
	// Awaits reports whether a call of the session's waits for one like this to be made again.
	Awaits(msg jsonrpc.Message) bool
	// Record returns what Restore needs, nil when the conversation cannot be restored.
	// It changes with initialize, logging/setLevel, subscriptions, the first answer to
	// each kind of question, and what the client does not serve. It says what the client
	// declared, and is to be sealed.
	Record() []byte
	// Adopt takes over what another replica has changed of the record since before, and
	// keeps what was changed here. The pusher is not told.
	Adopt(before, theirs []byte) error
	// Flows returns a record of each call that has begun and not ended, for Resume.
	// They hold params, answers and request state, and are to be sealed.
	Flows() [][]byte
	// Resume goes on with a call from its record, on a restored conversation, and sends
	// what it has to say to out. Its questions stay open under the ids that the client
	// knows. A request that was in flight is sent again where that does no harm (D-15),
	// else the call ends with an error. It does not wait.
	Resume(caller Caller, flow []byte, out Reply) error
	// GiveUp returns what has the server give up what it does for a call which is not here, by its record, as
	// Close does for those that are: their client ends the session (G-13). It does not wait, and keeps nothing large of
	// the call. It is nil where the server does nothing.
	GiveUp(caller Caller, flow []byte) (tell func(), err error)
	// Leave leaves the calls that wait for their client, and are kept, to another process.
	Leave()
	// Unload leaves those of them to the store for which may says so. It is told when
	// something is due to a call next, of which nobody takes note here any more. What it
	// returns is whether nothing is left that Restore and Resume would not bring back.
	Unload(may func(call Checkpointer, due time.Time) bool) (empty bool)
	// Renew keeps all calls anew that are kept, those that are at the server included, and leaves
	// those that another process goes on with to it: here they end.
	Renew()
	// Reauthorize tells that the session is bound to newer credentials by now: what it does without a
	// request of its client's, and the calls that it has under way, go on with them (H-2).
	Reauthorize(authorization string)
	// StopListening ends what the conversation hears from the server without a request of its client's: the
	// credentials with which it came have had their time. What is under way goes on. It does not wait, and may
	// be called again.
	StopListening()
	// Look tells what there is to see of the session at this moment.
	Look() observe.Conversation
	// EndCall ends the call that Look tells of by this id, with an error for its client (ErrCallEnded), and reports whether
	// there was one.
	EndCall(id string) bool
	// Watch tells see of each call under way that Look tells of, and where what it says
	// goes. What see returns takes that place from now on; nil: it stays.
	Watch(see func(observe.Flow, Reply) Reply)
	// Conclude lets no request begin any more. What is at the server is answered by it; what
	// waits for the client, or would go there again, ends with an error. Close follows.
	Conclude()
	// Close ends every flow of the conversation: without an answer when the client
	// is gone or wanted it so (D-T19), with an error for ErrStopping. It is idempotent.
	Close(cause error)
}

// Origin is what a request to the server is made for.
type Origin interface {
	// Reply is where the answer goes in the end; nil: nobody waits for it at present.
	Reply() Reply
}

// Reply is where the answer to one request goes. Its methods are safe for
// concurrent use; calls after the end are ignored.
type Reply interface {
	// Interactive reports whether notifications and server requests can reach
	// the client on this exchange.
	Interactive() bool
	// Send delivers an interim message, a notification or a server request,
	// and thereby turns the response into a stream (E-6). A Text is kept and must not
	// be changed afterwards; a message without one is copied before Send returns. A
	// client that is not interactive gets nothing.
	Send(msg Message)
	// Queue is Send without its own write: the message leaves with the next
	// Send, Flush or Finish. Messages that arrive together share a write so.
	Queue(msg Message)
	// Flush sends what is queued.
	Flush()
	// Finish delivers the JSON-RPC response and ends the exchange. The message
	// is copied or written before Finish returns.
	Finish(msg Message)
	// Refuse relays the upstream's demand for authorization as an HTTP status
	// (H-3) and ends the exchange. When the response is already under way, or the
	// transport has no status, it reports false: the exchange goes on, and the
	// client's next HTTP request gets the challenge (H-4).
	Refuse(r *Refusal) bool
	// Abandon ends the exchange without a response: the client cancelled it.
	Abandon()
	// Address names the stream that messages of this exchange go to, and begins it if
	// need be, so that it can be written down before the first message leaves. It is
	// zero where there is none to come back to.
	Address() Address
	// Checkpointer is where the call is saved beyond the process, nil where it ends with it.
	Checkpointer() Checkpointer
	// Reachable reports whether what is sent can get to the client, now or when it
	// comes back. Work for a client that stays away may be given up (E-23).
	Reachable() bool
	// Attached reports whether what is sent leaves for the client now; after the end, whether that is
	// still on its way.
	Attached() bool
	// Delivered reports, after Finish, whether the response has left for the client, be it at once or when
	// that came back for it.
	Delivered() bool
	// Continue runs work that goes on with the request and may wait, without
	// waiting for it: on the goroutine that waits for the end of the exchange
	// where there is one, which saves two switches and a stack that has yet to
	// grow, otherwise on a new one.
	Continue(work func())
	// Outlast tells, before the end, that a call goes on after it. Until over is called the request
	// counts as under way: its place stays taken, its session is in use, and an orderly stop waits.
	// From then on the client has the session's idle time to fetch what the call brought. over is to
	// be called once, by whoever holds no lock that replies are called under.
	Outlast() (over func())
}

// Checkpointer saves a call that waits for its client, so that another process can go on with
// it. Once something was kept, Finish keeps the response until it can have been
// fetched, and Abandon removes what was kept.
type Checkpointer interface {
	// Save returns when k is kept; then its message has been sent. ErrGone says that
	// another process goes on with the call, or that the answer which led to k counts for nothing, since
	// it is not kept.
	Save(k Checkpoint) error
	// Grow makes room for so many bytes more in what is kept, before an answer is taken that stays there while
	// other questions are open; fewer than none give back what an answer did not take. The error is budget.ErrNoRoom: the answer
	// is not to be taken.
	Grow(bytes int) error
	// Holds reports whether a question was kept, here or by whoever had the call before: else it
	// never left.
	Holds(question jsonrpc.ID) bool
	// Drop removes what was kept: the call was cancelled.
	Drop()
	// Leave ends the exchange in this process, and leaves what was kept to another.
	Leave()
}

// Checkpoint is a call as it waits.
type Checkpoint struct {
	Request jsonrpc.ID    // the client's id of the call
	N       uint64        // counts what is kept of this call: of two records the higher one is true
	Record  []byte        // for Conversation.Resume
	Open    []jsonrpc.ID  // the questions that wait for an answer
	Message *Message      // the question that is about to leave, if there is one
	TTL     time.Duration // how long the call may wait
	Over    func() bool   // whether the call has ended, so that this need not be kept any more; nil: not before it is
	Owed    bool          // the client has given an answer: it is kept even when there is no memory for it
	Aside   bool          // no answer has led to it: if it cannot be kept, nothing is taken back and the call stays in this process
	Again   bool          // nothing new: it is only to be made sure that no other process has the call. Where the store cannot say, nothing follows
}

// Address names a stream of a session, for whoever is to go on with a call.
type Address struct {
	Session string // the whole id, which is a credential
	Stream  uint64
}

// Pusher is a session as its conversation sees it. It delivers messages that no request
// of the client asked for: list-changed notifications and resource updates (C.3).
type Pusher interface {
	// Push delivers a message, or keeps it until the client listens. Of several
	// kept messages with one key only the newest is delivered. A Text is kept and
	// must not be changed afterwards; a message without one is copied before Push
	// returns.
	Push(key string, msg Message)
	// Reaches reports whether there is a channel for such messages (A.4). Where there is
	// none, nothing is to be pushed; all else holds.
	Reaches() bool
	// Accepted tells that the upstream has accepted the credentials of a caller with a
	// Rotation, and reports whether the session is bound to them from now on. It may ask
	// the upstream, and takes that long.
	Accepted(caller Caller) bool
	// Changed tells that Record returns something else now. It returns when that is
	// kept, where sessions are kept at all; so it is not to be called under a lock,
	// and before the client is told of the change.
	Changed()
	// Detached tells that a call of the session, the same as all with this Likeness, may be answered
	// with what is pending, and waits here until then for the same one to be made again. It
	// returns when other replicas know, where there are any, and is not to be called under a lock.
	Detached(call uint64, until time.Time)
	// End ends the session from this side, because what it stood for is gone: it
	// makes the client's next request find none, or closes the connection that is the
	// session. What is under way is concluded before. The error is for the log.
	End(why error)
}

// Reaches reports whether something can be pushed to a client; nil stands for what is no
// session.
func Reaches(push Pusher) bool { return push != nil && push.Reaches() }

// Refusal is the upstream's answer to a request without the right credentials.
type Refusal struct {
	Status    int      // 401 or 403; 404 from a server that no longer knows the session
	Challenge []string // values of WWW-Authenticate
	Body      []byte   // JSON; empty where the challenge says it all
	Why       string   // for clients that see no status, where more than that is known
}

// Error describes the refusal without its challenge.
func (r *Refusal) Error() string {
	return fmt.Sprintf("upstream refused the credentials with status %d", r.Status)
}

// Relayer knows a server of the clients' own era, to which whole HTTP exchanges can
// be handed.
type Relayer interface {
	// Relay returns who serves a request that belongs to no session here, or nil
	// when it is to be served as if there were no such server. msg is the message
	// of a POST, nil when there is none or several. caller tells who the request
	// acts for; it may be called once.
	Relay(r *http.Request, msg *jsonrpc.Message, caller func() Caller) http.Handler
}
