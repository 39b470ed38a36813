package call

import (
	"errors"
	"strings"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/bridge/flight"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// ending words how a call ends. It has no state of its own.
type ending struct{ *Call }

// fail answers the client with the error of e.
func (k ending) fail(e *effect) {
	k.held.Made() // a client may take its time
	err := e.err
	if failure := (*upstream.Failure)(nil); errors.As(err, &failure) && failure.Cause == upstream.Unauthorized {
		if k.Reply().Refuse(ends.RefusalOf(failure)) { // H-3; too late: H-4
			return
		}
	}
	of := ends.Facts{Method: k.flow.Method, Params: k.flow.Params, Rules: k.client.Rules, Capabilities: k.flow.Capabilities}
	if abort := (*mrtr.Abort)(nil); errors.As(err, &abort) && abort.Undeclared != "" {
		of.Undeclared = k.undeclared(abort.Undeclared)
	}
	result, rpcErr := ends.Explain(err, &of)
	ends.Finish(k.Reply(), k.flow.ID, result, rpcErr)
}

// deliver answers the client with the completed result, translated straight into its
// message. A result that cannot be translated is how the call failed (B-30), so that is
// known before anybody is told how it ended.
func (k ending) deliver(e *effect) {
	req := k.request()
	buf := borrow()
	defer giveBack(buf)
	msg, err := k.answer(buf, &req, e.result)
	if err != nil {
		e.do, e.err = mrtr.Fail, err
		reporter(k).report(e)
		k.fail(e)
		return
	}
	if k.slot != nil && k.flow.Round == 0 { // D-I10
		k.slot.Keep(e.result)
	}
	reporter(k).report(e)
	k.held.Made() // a client may take its time
	k.Reply().Finish(msg)
}

// answerAtOnce answers with a result that is known. On an error nothing was sent. A long one is charged like one that
// has come, until its client has taken it.
func (k ending) answerAtOnce(req *downstream.Request, result []byte) error {
	defer k.held.End()
	if len(result) > flight.FewBytes {
		if err := k.held.Set(len(result)); err != nil {
			return err
		}
	}
	buf := borrow()
	defer giveBack(buf)
	msg, err := k.answer(buf, req, result)
	if err == nil {
		k.out.Finish(msg)
	}
	return err
}

// answer makes the response to req, in buf.
func (k ending) answer(buf *[]byte, req *downstream.Request, result []byte) (downstream.Message, error) {
	head := jsonrpc.AppendResultHead((*buf)[:0], req.ID)
	text, err := k.appendResult(head, req, result)
	if err != nil {
		return downstream.Message{}, err
	}
	msg := downstream.Result(req.ID, text[len(head):])
	*buf = append(text, '}')
	msg.Text = *buf
	return msg, nil
}

// appendResult appends what the client gets to see of an upstream result.
func (k ending) appendResult(dst []byte, req *downstream.Request, result []byte) ([]byte, error) {
	known, rules := k.client.Driver.Catalog, *k.client.Rules
	rules.Held = k.held.Work()
	if mcp.IsList(req.Method) {
		audience := k.audience()
		dst, err := known.AppendList(dst, &rules, audience, req, result)
		if err == nil && req.Method == mcp.MethodToolsList {
			k.session().ShownWrapped(known.Wrapped(audience))
		}
		return dst, notTakenIn(err)
	}
	if req.Method == mcp.MethodToolsCall && known.Wraps() {
		// A tool whose output schema was shown wrapped must have its structured
		// content wrapped, whatever its kind, so that it matches what the client
		// was told (Q10), perhaps by another process, which only the session knows.
		audience := k.shown()
		rules.WrapOutput = known.Tool(audience, req.Name).Wrapped || !known.Knows(audience) && k.session().WasShownWrapped(req.Name)
	}
	dst, err := rules.AppendResult(dst, req.Method, result)
	return dst, notTakenIn(err)
}

// notTakenIn says of a result for whose translation there is no memory what is said of one that was too much itself.
func notTakenIn(err error) error {
	if !budget.Short(err) {
		return err
	}
	return upstream.NotTakenIn(err)
}

// audience names for whom the call is: what is known of tools is known of theirs.
func (k ending) audience() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.audienceLocked(k.headerLocked())
}

// shown names to whom the session's client has had tools shown, whoever makes the call.
func (k ending) shown() string {
	k.mu.Lock()
	header := k.headerLocked()
	k.mu.Unlock()
	return hop.Audience(k.client.Principal, header)
}

// request returns the client's request, as far as answering needs it.
func (k ending) request() downstream.Request {
	req := downstream.Request{Name: k.name}
	req.ID, req.Method, req.Params = k.flow.ID, k.flow.Method, k.flow.Params
	return req
}

// undeclared words the refusal of a round that asks for what was not declared
// upstream (C-33). Why it was not is the client's business, and may be in its hands.
func (k ending) undeclared(capability string) string {
	asked := "the server asked for " + capability + ", "
	switch {
	case k.client.Capable == nil:
		return asked + "which needs a session: send initialize first"
	case !k.Reply().Interactive():
		return asked + "but nothing can be asked on this request: its Accept header lacks text/event-stream"
	case k.client.Session.Distrusts(capability):
		return asked + "which this client declared but did not serve when it was last asked"
	}
	return asked + "which the client did not declare" + instead(capability)
}

// instead says what whoever runs the bridge could switch on.
func instead(capability string) string {
	name, _, _ := strings.Cut(capability, ".")
	kind, _ := mcp.InputKindThatNeeds(name)
	setting := translate.Setting(kind)
	if setting == "" {
		return ""
	}
	return "; whoever runs the bridge can do without it: " + setting
}
