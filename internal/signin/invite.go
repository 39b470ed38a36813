package signin

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// A client that can show addresses to its person is asked to show the sign-in, by a
// question in the server's place: input_required, like any question of a server. The
// call comes again with the answer, and waits; the flow sees no difference, so the
// client is told of the completion, too (C-32). Nobody may have looked at the question:
// then the call comes again when its time to wait is over, and gets the page's address.

// invitationKey names that question. Its call, when that comes again, is named by the same and by when
// it began to wait, in milliseconds since 1970.
const invitationKey = "mcp-bridge/sign-in"

// reply is what became of an invitation; the zero reply: there was none.
type reply struct {
	agreed bool // the person goes to the page
	silent bool // nobody answered in time
}

// canShow reports whether a call's client shows addresses, and can be asked: a call
// that carries answers is the server's own conversation already.
func canShow(call *upstream.Call) bool {
	if !mcp.MayRequireInput(call.Method) || rawjson.Has(call.Params, "inputResponses") || rawjson.Has(call.Params, "requestState") {
		return false
	}
	declared := rawjson.Get(rawjson.Get(call.Params, "_meta"), mcp.MetaClientCapabilities)
	return rawjson.Has(rawjson.Get(declared, "elicitation"), "url")
}

// isPage reports an error that says which page is to be shown.
func isPage(err error) bool {
	pending, ok := errors.AsType[*authorize.Pending](err)
	return ok && pending.URL != ""
}

// invitation asks the client to show the page of a *authorize.Pending, and takes so much of the time of a call
// that began to wait then.
func invitation(err error, began time.Time, left time.Duration) *upstream.Answer {
	p, _ := errors.AsType[*authorize.Pending](err)
	text := p.Server + " wants you to sign in."
	if p.Code != "" {
		text += " Enter the code " + p.Code + " there."
	}
	params := rawjson.Apply(nil, []byte(`{"mode":"url"}`), quoted("message", text), quoted("url", p.URL))
	request := rawjson.Apply(nil, []byte("{}"), quoted("method", mcp.MethodElicitationCreate), rawjson.Edit{Name: "params", Value: params})
	requests := rawjson.Apply(nil, []byte("{}"), rawjson.Edit{Name: invitationKey, Value: request})
	state := invitationKey + " " + strconv.FormatInt(began.UnixMilli(), 10)
	return &upstream.Answer{AnswerIn: left, Result: rawjson.Apply(nil, []byte("{}"), quoted("resultType", mcp.ResultInputRequired),
		rawjson.Edit{Name: "inputRequests", Value: requests}, quoted("requestState", state))}
}

func quoted(name, text string) rawjson.Edit {
	return rawjson.Edit{Name: name, Value: rawjson.AppendQuote(nil, text)}
}

var errDeclined = errors.New("you declined to sign in; call again when you want to")

// answered returns a call that comes again with what became of an invitation as it was
// before, and when it began to wait. Any other call it returns as it is: it begins now.
func (s *signing) answered(call *upstream.Call) (_ *upstream.Call, got reply, began time.Time, err error) {
	now := time.Now()
	state, _ := rawjson.Text(rawjson.Get(call.Params, "requestState"))
	name, since, _ := strings.Cut(state, " ")
	answer := rawjson.Get(rawjson.Get(call.Params, "inputResponses"), invitationKey)
	if name != invitationKey || answer == nil {
		return call, got, now, nil
	}
	if began = now; since != "" {
		milli, _ := strconv.ParseInt(since, 10, 64)
		began = time.UnixMilli(milli)
	}
	switch action, _ := rawjson.Text(rawjson.Get(answer, "action")); {
	case action == "accept":
		got.agreed = true
	case action == "cancel" && now.Sub(began) >= s.Wait: // which is what silence comes to (C.9)
		got.silent = true
	default:
		return nil, got, began, errDeclined
	}
	own := *call
	own.Params = rawjson.Apply(nil, call.Params, rawjson.Edit{Name: "requestState"}, rawjson.Edit{Name: "inputResponses"})
	return &own, got, began, nil
}

// shortest is the time that is left to a call in any case, to look whether somebody has signed in.
const shortest = time.Second

// left returns how much longer a call may wait that began then; a clock that was set back makes it no longer.
func (s *signing) left(began time.Time) time.Duration {
	return min(max(s.Wait-time.Since(began), shortest), s.Wait)
}
