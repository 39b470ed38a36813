package bridge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
)

// notes takes what there is to say besides ends.
type notes struct {
	endings
	said []string
	took map[observe.Phase][]time.Duration
	mu   sync.Mutex
}

func (n *notes) say(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, text)
}

func (n *notes) Repeated(why observe.Repeat)     { n.say("repeated " + why.String()) }
func (n *notes) Lost(_ mcp.Version, what string) { n.say("lost " + what) }
func (n *notes) Cached(hit bool)                 { n.say(fmt.Sprint("cached ", hit)) }
func (n *notes) Overhead(p observe.Phase, took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.took[p] = append(n.took[p], took)
}

// TestWhoWatchesIsTold of rounds that are sent again, of what a revision does not get, and
// of results that were kept.
func TestWhoWatchesIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		version mcp.Version
		method  string
		steps   []step
		wait    time.Duration
		want    []string
	}{
		"state only":  {steps: []step{inputRequired(`"s"`), result(booked)}, wait: time.Minute, want: []string{"repeated state_only"}},
		"never left":  {steps: []step{failure(&upstream.Failure{Cause: upstream.Lost}), result(booked)}, want: []string{"repeated connection"}},
		"nothing":     {steps: []step{result(booked)}},
		"audio":       {version: mcp.V20241105, steps: []step{result(`{"resultType":"complete","content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}`)}, want: []string{"lost audio"}},
		"a link":      {version: mcp.V20250326, steps: []step{result(`{"resultType":"complete","content":[{"type":"resource_link","uri":"a:b","name":"c"}]}`)}, want: []string{"lost resource_link"}},
		"no object":   {steps: []step{result(`{"resultType":"complete","content":[],"structuredContent":[1]}`)}, want: []string{"lost output_wrapped"}},
		"a bad tool":  {method: mcp.MethodToolsList, steps: []step{result(`{"resultType":"complete","ttlMs":0,"tools":[{"name":"a","inputSchema":7}]}`)}, want: []string{"cached false", "lost tool_excluded"}},
		"a kept list": {method: mcp.MethodPromptsList, steps: []step{result(`{"resultType":"complete","ttlMs":60000,"cacheScope":"public","prompts":[]}`)}, want: []string{"cached false", "cached true"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := &notes{took: map[observe.Phase][]time.Duration{}}
				conv, _ := sessionWith(t, Options{Watch: seen, Log: zerolog.Nop()}, tc.steps...)
				if tc.version == "" {
					tc.version = mcp.V20250618
				}
				rules := conv.b.rules.of(tc.version)
				conv.Rules = &rules
				method, params := mcp.MethodToolsCall, book
				if tc.method != "" {
					method, params = tc.method, "{}"
				}
				request(t, conv, "1", method, params)
				pass(tc.wait + time.Second)
				if name == "a kept list" {
					request(t, conv, "2", method, params)
				}
				if !slices.Equal(seen.said, tc.want) {
					t.Errorf("%q, want %q", seen.said, tc.want)
				}
			})
		})
	}
}

// TestOverheadIsTheBridgesOwn: neither the server's time nor a person's counts.
func TestOverheadIsTheBridgesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(s step) step { return after(time.Second, s) }
		others := slices.Repeat([]step{result(booked)}, observe.OverheadEvery-1)
		conv, _ := session(t, Limits{}, append(others, slow(inputRequired(`"s"`, question1("a"))), slow(result(booked)))...)
		seen := &notes{took: map[observe.Phase][]time.Duration{}}
		conv.Driver.Watch = seen
		for range others {
			request(t, conv, "1", mcp.MethodToolsCall, book)
		}
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(time.Minute)
		c.answer(0, `{"action":"accept","content":{}}`)
		pass(time.Minute)
		c.result()
		if up, down := seen.took[observe.ToServer], seen.took[observe.ToClient]; len(up) != 1 || len(down) != 1 || up[0] != 0 || down[0] != 0 {
			t.Errorf("%v", seen.took)
		}
	})
}

// after is a step that takes its time.
func after(d time.Duration, s step) step {
	return func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		<-time.After(d)
		return s(ctx, call, notify)
	}
}
