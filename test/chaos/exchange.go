package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	last string // the latest event's id
	cuts int    // how often to lose the stream
}

// run returns how the call ended, and why.
func (x *exchange) run(ctx context.Context) (how, reason string) {
	resp, err := x.post(ctx, calls.Call(x.id, x.plan.params())) //nolint:bodyclose // read closes it
	if err != nil {
		return x.failed(err.Error())
	}
	for attempt := 0; ; attempt++ {
		how, reason, over := x.read(ctx, resp)
		if over {
			return how, reason
		}
		if x.last == "" {
			return endLost, "the response ended without an answer and without a way back: " + reason
		}
		if resp, err = x.do(ctx, http.MethodGet, "", x.last); err != nil { //nolint:bodyclose // read closes it
			signIn := strings.Contains(err.Error(), "status 401") // a client would, and come back
			if attempt < 20 && (signIn || !errors.Is(err, errStatus)) {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			return endLost, "the stream cannot be resumed: " + err.Error()
		}
	}
}

// read takes a response apart. It reports false when it ended without the answer.
func (x *exchange) read(ctx context.Context, resp *http.Response) (how, reason string, over bool) {
	if resp == nil {
		return "", "", false
	}
	defer resp.Body.Close()
	switch kind := resp.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/json"):
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return "", err.Error(), false
		}
		how, reason = x.answered(text)
		return how, reason, true
	case !strings.HasPrefix(kind, "text/event-stream"):
		return endLost, "a response of type " + kind, true
	}
	events := sse.NewDecoder(resp.Body, 16<<20)
	for {
		ev, err := events.Next()
		if err != nil {
			return "", err.Error(), false
		}
		if ev.ID != "" {
			x.last = ev.ID
		}
		if len(ev.Data) == 0 {
			continue
		}
		if x.plan.habit == habitSlow {
			time.Sleep(time.Millisecond)
		}
		if how, reason, over = x.take(ctx, ev.Data); over {
			return how, reason, true
		}
		if x.cuts > 0 && x.last != "" && x.random.IntN(3) == 0 {
			x.cuts--
			return "", "cut", false
		}
	}
}

// take looks at one message of the stream.
func (x *exchange) take(ctx context.Context, text []byte) (how, reason string, over bool) {
	var m calls.Message
	if err := json.Unmarshal(text, &m); err != nil {
		return endLost, "an event that is no message", true
	}
	switch m.Method {
	case "notifications/progress":
		if m.Params.Message != x.plan.Nonce {
			x.ledger.crossed(x.plan.Nonce, "progress of "+m.Params.Message)
		}
	case "elicitation/create":
		if !strings.HasPrefix(m.Params.Message, x.plan.Nonce+"/") {
			x.ledger.crossed(x.plan.Nonce, "the question of "+m.Params.Message)
		}
		if x.plan.habit == habitCancel {
			return x.cancel(ctx)
		}
		if err := x.say(ctx, &m); err != nil {
			return endLost, "the person's answer was not taken: " + err.Error(), true
		}
	case "":
		how, reason = x.answered(text)
		return how, reason, true
	}
	return "", "", false
}

// say answers a question, by some twice. It returns why the answer was not taken.
func (x *exchange) say(ctx context.Context, m *calls.Message) error {
	text := calls.Accept(m.ID, m.Params.Message)
	times := 1
	if x.plan.habit == habitTwice {
		times = 2
	}
	for range times {
		for attempt := 0; ; attempt++ {
			resp, err := x.post(ctx, text)
			if err == nil {
				_ = resp.Body.Close()
				break
			}
			if attempt > 20 || errors.Is(err, errStatus) {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

func (x *exchange) cancel(ctx context.Context) (how, reason string, over bool) {
	resp, err := x.post(ctx, calls.Cancel(x.id))
	if err == nil {
		_ = resp.Body.Close()
	}
	return endCancelled, "", true
}

// answered judges the final answer.
func (x *exchange) answered(text []byte) (how, reason string) {
	var m calls.Message
	if err := json.Unmarshal(text, &m); err != nil {
		return endLost, "an answer that is no message"
	}
	switch {
	case string(m.ID) != x.id:
		x.ledger.crossed(x.plan.Nonce, "the answer to "+string(m.ID))
		return endResult, ""
	case m.Error != nil:
		return x.failed(m.Error.Message)
	case m.Result == nil || len(m.Result.Content) == 0:
		return endLost, "a result without content"
	case m.Result.IsError:
		return x.failed(m.Result.Content[0].Text)
	}
	want := fmt.Sprintf("done %s %s", x.plan.Nonce, strings.Repeat("x", x.plan.Size))
	if m.Result.Content[0].Text != want {
		x.ledger.crossed(x.plan.Nonce, fmt.Sprintf("the result %.60s", m.Result.Content[0].Text))
	}
	return endResult, ""
}

// strays are what a call gets to see of another one's fault.
var strays = []string{"somebody else's", "status 401"}

// outages are the words with which the bridge tells that the server was away, or that a
// connection to it went down with the server.
var outages = []string{"cannot be reached", "was lost before it answered", "ended the response before", "is busy"}

// failed judges an error that the client got.
func (x *exchange) failed(reason string) (string, string) {
	if !harmless(x.plan.Fault) && (x.plan.Fault != faultBusy || x.plan.At == 0) {
		return endError, reason
	}
	contained := func(words string) bool { return strings.Contains(reason, words) }
	switch {
	case slices.ContainsFunc(outages, contained):
		return endOutage, reason
	case slices.ContainsFunc(strays, contained):
		return endHarmed, reason
	}
	return endInnocent, reason
}
