package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/upstream"
)

// patience bounds one request, as timeouts.round does by default.
const patience = 2 * time.Minute

// Result is what became of one exchange.
type Result struct {
	Name        string
	Took        time.Duration
	Differences []string // empty: the answer is as it was recorded
}

// Against sends the requests of a recording to a server, one after another, and tells
// report how each went. The error is that of ctx.
func Against(ctx context.Context, server upstream.Caller, head record.Head, exchanges []*Exchange, report func(Result)) error {
	states := standIns{}
	redact := record.NewRedactor(head.Payloads)
	for _, x := range exchanges {
		if err := ctx.Err(); err != nil {
			return err
		}
		if x.Answer == nil && x.Failure == "" {
			continue // cancelled, or still under way when the recording ended
		}
		params := states.apply(x.Request.Params)
		if !head.Payloads {
			params = concrete(params)
		}
		began := time.Now()
		answer, failure := ask(ctx, server, &upstream.Call{Method: x.Request.Method, Params: params})
		result := Result{Name: x.name(), Took: time.Since(began)}
		switch {
		case failure != "" && x.Answer != nil:
			result.Differences = []string{"there was an answer, and now: " + failure}
		case failure != "" || x.Answer == nil:
			if failure != x.Failure {
				result.Differences = []string{fmt.Sprintf("there was no answer (%s), and now: %s", x.Failure, outcome(failure))}
			}
		default:
			states.learn(x.Answer.Result, answer.Result)
			result.Differences = compare(x.Answer, seen(redact, answer))
		}
		report(result)
	}
	return nil
}

func outcome(failure string) string {
	if failure == "" {
		return "an answer"
	}
	return failure
}

// ask makes a request. Without an answer it says why.
func ask(ctx context.Context, server upstream.Caller, call *upstream.Call) (*jsonrpc.Message, string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := server.Do(ctx, call, func(jsonrpc.Message) {})
	if err != nil {
		var failure *upstream.Failure
		if errors.As(err, &failure) {
			return nil, failure.Cause.String()
		}
		return nil, err.Error()
	}
	return &jsonrpc.Message{Result: answer.Result, Error: answer.Error}, ""
}

// seen returns an answer as a recording would have it.
func seen(redact *record.Redactor, answer *jsonrpc.Message) *jsonrpc.Message {
	answer.ID = "1"
	msg, err := jsonrpc.Parse(redact.Message(answer.AppendTo(nil)))
	if err != nil {
		return answer // impossible: redaction leaves a message one
	}
	return &msg
}
