//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/test/calls"
)

// exchange is one call under way.
type exchange struct {
	*client
	plan *plan
	id   string
	last string          // the latest event's id
	had  map[string]bool // event ids, and questions
	asks int             // questions that were shown
	cut  bool            // the stream is to be lost
	how  ending
	why  string
}

// call makes one call and writes its end into the ledger.
func (c *client) call(ctx context.Context, p *plan) {
	ctx, stop := context.WithTimeout(ctx, c.patient)
	defer stop()
	c.lastID++
	x := &exchange{client: c, plan: p, id: fmt.Sprint(c.lastID), had: map[string]bool{}}
	x.run(ctx)
	x.again(ctx)
	if ctx.Err() != nil && x.how != gotResult {
		x.ends(gotLost, "it has no end: "+x.why)
	}
	c.ledger.end(p, x.how, x.why)
}

// ends notes how the call ended. It returns true.
func (x *exchange) ends(how ending, why string) bool {
	x.how, x.why = how, why
	return true
}

func (x *exchange) run(ctx context.Context) {
	resp, over := x.begin(ctx) //nolint:bodyclose // read closes it
	for !over {
		over = x.read(ctx, resp)
		if over {
			return
		}
		if x.last == "" {
			x.ends(gotFailure, "the connection ended before the response began")
			return
		}
		resp, over = x.back(ctx) //nolint:bodyclose // read closes it
	}
}

// begin sends the request. What says that nothing was done may be tried again.
func (x *exchange) begin(ctx context.Context) (*http.Response, bool) {
	body := calls.Call(x.id, x.plan.params())
	for {
		resp, err := x.do(ctx, http.MethodPost, body, "")
		var dial *net.OpError
		var status *statusError
		switch {
		case err == nil:
			return resp, false
		case ctx.Err() != nil:
			return nil, x.ends(gotLost, err.Error())
		case errors.As(err, &status) && status.again, errors.As(err, &dial) && dial.Op == "dial":
			pause(ctx, 50*time.Millisecond)
		case errors.As(err, &status) && status.status < 500:
			return nil, x.ends(gotLost, err.Error()) // above all 404: its session is gone
		default:
			return nil, x.ends(gotFailure, "to the call: "+err.Error())
		}
	}
}

// back resumes the stream.
func (x *exchange) back(ctx context.Context) (*http.Response, bool) {
	resp, err := x.repeat(ctx, http.MethodGet, "", x.last)
	var status *statusError
	switch {
	case err == nil:
		return resp, false
	case errors.As(err, &status) && status.status == http.StatusBadRequest && x.asks == 0:
		return nil, x.ends(gotFailure, "to its way back, nothing was asked yet: "+err.Error())
	}
	return nil, x.ends(gotLost, "its stream does not come back: "+err.Error())
}

// read takes a response apart. It reports false when it ended without the answer.
func (x *exchange) read(ctx context.Context, resp *http.Response) bool {
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return x.ends(gotFailure, "the response broke off")
		}
		return x.answered(text)
	}
	events := sse.NewDecoder(resp.Body, 16<<20)
	for {
		ev, err := events.Next()
		if err != nil {
			x.why = err.Error()
			return false
		}
		if ev.ID != "" {
			x.last = ev.ID
		}
		if len(ev.Data) == 0 {
			continue
		}
		if x.had[ev.ID] {
			x.ledger.twice(x.plan.Nonce, "event "+ev.ID)
		}
		x.had[ev.ID] = true
		if x.take(ctx, ev.Data) {
			return true
		}
		if x.cut {
			x.cut = false
			return false
		}
	}
}

// take looks at one message of the stream. It reports whether the call is over.
func (x *exchange) take(ctx context.Context, text []byte) bool {
	var m calls.Message
	if err := json.Unmarshal(text, &m); err != nil {
		return x.ends(gotLost, "an event that is no message")
	}
	switch m.Method {
	case "notifications/progress":
		if m.Params.Message != x.plan.Nonce && !strings.HasPrefix(m.Params.Message, "Waiting for your answer") { // the bridge's own
			x.ledger.crossed(x.plan.Nonce, "progress of "+m.Params.Message)
		}
	case "elicitation/create":
		return x.asked(ctx, &m)
	case "":
		return x.answered(text)
	}
	return false
}

// asked answers a question, by some twice, or gives the call up.
func (x *exchange) asked(ctx context.Context, m *calls.Message) bool {
	if !strings.HasPrefix(m.Params.Message, x.plan.Nonce+"/") {
		x.ledger.crossed(x.plan.Nonce, "the question of "+m.Params.Message)
	}
	if x.had[m.Params.Message] {
		x.ledger.twice(x.plan.Nonce, "the question "+m.Params.Message)
	}
	x.had[m.Params.Message] = true
	x.asks++
	x.cut = x.plan.habit == habitCut
	pause(ctx, x.plan.think)
	text := calls.Accept(m.ID, m.Params.Message)
	if x.plan.habit == habitCancel {
		return x.cancel(ctx, m.Params.Message, text)
	}
	times := 1
	if x.plan.habit == habitTwice {
		times = 2
	}
	for range times {
		if err := x.tell(ctx, text); err != nil {
			return x.ends(gotLost, "the person's answer was not taken: "+err.Error())
		}
	}
	return false
}

// cancel gives the call up, and answers all the same: that must have nothing run, now or later. What was answered before
// may be at the server still, once more, where the tool allows that.
func (x *exchange) cancel(ctx context.Context, question, answer string) bool {
	if err := x.tell(ctx, calls.Cancel(x.id)); err != nil {
		return x.ends(gotLost, "the cancellation was not taken: "+err.Error())
	}
	x.ledger.gaveUp(question)
	if err := x.tell(ctx, answer); err != nil {
		return x.ends(gotLost, "the answer to a cancelled call was not taken: "+err.Error())
	}
	return x.ends(gotCancelled, "")
}

// reasons are words of errors that tell the truth about an interrupted call.
var reasons = []string{"outcome is unknown", "whether it was done is unknown", "could not keep the call", "shutting down", "was lost before it answered"}

// answered judges the final answer.
func (x *exchange) answered(text []byte) bool {
	var m calls.Message
	switch err := json.Unmarshal(text, &m); {
	case err != nil:
		return x.ends(gotLost, "an answer that is no message")
	case string(m.ID) != x.id:
		x.ledger.crossed(x.plan.Nonce, "the answer to "+string(m.ID))
	case m.Error != nil && slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(m.Error.Message, r) }):
		return x.ends(gotFailure, "to the call: "+m.Error.Message)
	case m.Error != nil || m.Result == nil || len(m.Result.Content) == 0 || m.Result.IsError:
		return x.ends(gotLost, "no result: "+string(text))
	case m.Result.Content[0].Text != done(x.plan):
		x.ledger.crossed(x.plan.Nonce, "the result "+m.Result.Content[0].Text)
	}
	return x.ends(gotResult, "")
}
