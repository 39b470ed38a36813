package signin

import (
	"errors"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// A client that can show addresses to its person is asked to show the sign-in, by a
// question in the server's place: input_required, like any question of a server. The
// call comes again with the answer, and waits; the flow sees no difference, so the
// client is told of the completion, too (C-32).

// invitation names that question, and its call when that comes again.
const invitationKey = "mcp-bridge/sign-in"

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

// invitation asks the client to show the page of a *authorize.Pending.
func invitation(err error) *upstream.Answer {
	p, _ := errors.AsType[*authorize.Pending](err)
	text := p.Server + " wants you to sign in."
	if p.Code != "" {
		text += " Enter the code " + p.Code + " there."
	}
	params := rawjson.Apply(nil, []byte(`{"mode":"url"}`), quoted("message", text), quoted("url", p.URL))
	request := rawjson.Apply(nil, []byte("{}"), quoted("method", mcp.MethodElicitationCreate), rawjson.Edit{Name: "params", Value: params})
	requests := rawjson.Apply(nil, []byte("{}"), rawjson.Edit{Name: invitationKey, Value: request})
	return &upstream.Answer{Result: rawjson.Apply(nil, []byte("{}"), quoted("resultType", mcp.ResultInputRequired),
		rawjson.Edit{Name: "inputRequests", Value: requests}, quoted("requestState", invitationKey))}
}

func quoted(name, text string) rawjson.Edit {
	return rawjson.Edit{Name: name, Value: rawjson.AppendQuote(nil, text)}
}

var errDeclined = errors.New("you declined to sign in; call again when you want to")

// answered returns a call that comes again with the answer to an invitation as it was
// before, and reports whether the person agreed. Any other call it returns as it is.
func answered(call *upstream.Call) (_ *upstream.Call, agreed bool, err error) {
	state, _ := rawjson.Text(rawjson.Get(call.Params, "requestState"))
	answer := rawjson.Get(rawjson.Get(call.Params, "inputResponses"), invitationKey)
	if state != invitationKey || answer == nil {
		return call, false, nil
	}
	if action, _ := rawjson.Text(rawjson.Get(answer, "action")); action != "accept" {
		return nil, false, errDeclined
	}
	own := *call
	own.Params = rawjson.Apply(nil, call.Params, rawjson.Edit{Name: "requestState"}, rawjson.Edit{Name: "inputResponses"})
	return &own, true, nil
}
