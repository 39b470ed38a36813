package check

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// ask opens a session with a legacy server, as a client of its newest revision
// does, and reads what it is and which tools it has. That is no more than the
// clients would find out, so nothing follows from a failure.
func (r *Report) ask(ctx context.Context, opt *Options, v *negotiate.Verdict, log zerolog.Logger) {
	server, err := opt.legacyServer(v.HTTPSSE, log)
	if err != nil {
		return
	}
	line := relay.New(relay.Options{Server: server, Start: opt.First + checkTimeout, Call: checkTimeout, Log: log})
	defer line.Close()
	caller := downstream.Caller{}
	newest := newestLegacy(v.Versions)
	if v.HTTPSSE { // which is all that is known of it
		newest = string(mcp.V20251125)
	}
	initialize := jsonrpc.Message{ID: "1", Method: mcp.MethodInitialize, Params: fmt.Appendf(nil,
		`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"mcp-bridge-check","version":"1"}}`, newest)}
	conv, result, err := line.Open(ctx, caller, initialize, deafPusher{})
	if err != nil {
		return
	}
	defer conv.Close(context.Canceled)
	r.identify(rawjson.Get(result, "serverInfo"), rawjson.Get(result, "capabilities"))
	if v.HTTPSSE {
		r.Versions = []string{printable(string(conv.Version()))}
	}
	conv.Notify(caller, jsonrpc.Message{Method: mcp.NotificationInitialized})
	if !rawjson.Has(rawjson.Get(result, "capabilities"), "tools") {
		return
	}
	id := 1
	_ = upstream.EachPage(nil, func(params []byte) (*upstream.Answer, error) {
		id++
		return &upstream.Answer{Result: request(ctx, conv, id, params)}, nil
	}, func(page *upstream.Answer) error {
		for range rawjson.Elements(rawjson.Get(page.Result, "tools")) {
			r.Tools++
		}
		return nil
	})
}

// legacyServer returns what connects a client with the server, one of HTTP+SSE or not.
func (o *Options) legacyServer(httpSSE bool, log zerolog.Logger) (relay.Server, error) {
	if o.Command != nil {
		command := *o.Command
		command.Log = log
		return &relay.Process{Options: command, Places: relay.NewPlaces(1)}, nil
	}
	endpoint, err := url.Parse(o.HTTP.URL)
	if err != nil {
		return nil, err
	}
	server := relay.NewHTTP(relay.HTTPOptions{
		URL: endpoint, Policy: o.HTTP.Policy(), TLS: o.HTTP.TLS, Dial: o.HTTP.Dial, MaxMessage: o.HTTP.MaxResponse, UserAgent: o.HTTP.UserAgent, Log: log,
	})
	if httpSSE {
		return server.SSE(), nil
	}
	return server, nil
}

// newestLegacy returns the newest of a server's versions that is a legacy one.
func newestLegacy(offered []string) string {
	newest := mcp.Version("")
	for _, name := range offered {
		if v := mcp.Version(name); v.IsLegacy() && v.AtLeast(newest) {
			newest = v
		}
	}
	return string(newest)
}

// request asks for one page of tools, nil when there is none.
func request(ctx context.Context, conv downstream.Conversation, id int, params []byte) []byte {
	out := make(answer, 1)
	conv.Serve(ctx, downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{
		ID: jsonrpc.ID(fmt.Sprint(id)), Method: mcp.MethodToolsList, Params: params,
	}), out)
	select {
	case result := <-out:
		return result
	case <-ctx.Done():
		return nil
	}
}

// answer is the Reply to a request of check: it takes the result, or nil.
type answer chan []byte

var _ downstream.Reply = (answer)(nil)

// Interactive implements downstream.Reply.
func (answer) Interactive() bool { return false }

// Send implements downstream.Reply.
func (answer) Send(downstream.Message) {}

// Queue implements downstream.Reply.
func (answer) Queue(downstream.Message) {}

// Flush implements downstream.Reply.
func (answer) Flush() {}

// Finish implements downstream.Reply.
func (a answer) Finish(msg downstream.Message) { a <- append([]byte(nil), msg.Result...) }

// Refuse implements downstream.Reply.
func (a answer) Refuse(*downstream.Refusal) bool {
	a <- nil
	return true
}

// Abandon implements downstream.Reply.
func (a answer) Abandon() { a <- nil }

// Reachable implements downstream.Reply.
func (answer) Reachable() bool { return true }

// Attached implements downstream.Reply.
func (answer) Attached() bool { return true }

// Delivered implements downstream.Reply.
func (answer) Delivered() bool { return true }

// Checkpointer implements downstream.Reply: nothing is kept.
func (answer) Checkpointer() downstream.Checkpointer { return nil }

// Address implements downstream.Reply.
func (answer) Address() downstream.Address { return downstream.Address{} }

// Continue implements downstream.Reply.
func (answer) Continue(work func()) { go work() }

// Outlast implements downstream.Reply: nothing does.
func (answer) Outlast() (over func()) { return func() {} }

// deafPusher takes what the server says unasked.
type deafPusher struct{}

// Changed implements downstream.Pusher: nothing is kept.
func (deafPusher) Changed() {}

// Detached implements downstream.Pusher.
func (deafPusher) Detached(uint64, time.Time) {}

// Reaches implements downstream.Pusher.
func (deafPusher) Reaches() bool { return true }

// Accepted implements downstream.Pusher.
func (deafPusher) Accepted(downstream.Caller) bool { return false }

// Push implements downstream.Pusher.
func (deafPusher) Push(string, downstream.Message) {}

// End implements downstream.Pusher.
func (deafPusher) End(error) {}
