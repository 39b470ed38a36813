package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/upstream"
)

func (announcerless) Listen(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) error {
	<-ctx.Done()
	return ctx.Err()
}
func (announcerless) Close() error { return nil }

// modelled is a call, and what the reference model says of it.
type modelled struct {
	*client
	key         string
	id          jsonrpc.ID
	asks, loses int

	round int
	ended string // with what: "" not yet, "none" without an answer, else a part of the answer
	left  bool
}

// house is two sessions, their calls, and the model: calls that wait, in the order in which
// they began to.
type house struct {
	t       *testing.T
	server  *counting
	convs   [2]*conversation
	open    [2]bool
	calls   [2][]*modelled
	waiting [2][]*modelled
}

const modelFlows = 3

func newHouse(t *testing.T) *house {
	h := &house{t: t, server: &counting{executed: map[string]int{}}}
	hours := mrtr.Limits{Grace: time.Minute, Round: 1000 * time.Hour, ServerRequest: 1000 * time.Hour, Call: 2000 * time.Hour, Heartbeat: 1000 * time.Hour}
	b := New(Options{Upstream: h.server, Limits: Limits{FlowsPerSession: modelFlows, Flow: hours}, Log: zerolog.Nop()})
	t.Cleanup(b.Close)
	for i := range h.convs {
		h.convs[i] = b.newConversation(mcp.V20251125, downstream.Caller{}, catalog.Unknown, nil)
		h.convs[i].declare([]byte(`{"name":"old","version":"1"}`), []byte(declaredByClient))
		b.adopt(h.convs[i])
		h.open[i] = true
	}
	return h
}

// start makes a call. The ids of both sessions are the same.
func (h *house) start(s, asks, loses int) {
	n := len(h.calls[s])
	m := &modelled{client: &client{t: h.t, conv: h.convs[s]}, key: fmt.Sprintf("s%dc%d", s, n), id: jsonrpc.IntID(int64(n)), asks: asks, loses: loses}
	h.calls[s] = append(h.calls[s], m)
	requestOn(m.client, string(m.id), mcp.MethodToolsCall, fmt.Sprintf(`{"name":"book","arguments":{"plan":"%s %d %d"}}`, m.key, asks, loses))
	if !h.open[s] {
		m.ended = "none"
		return
	}
	h.execute(s, m)
}

// execute is what the model does with one round.
func (h *house) execute(s int, m *modelled) {
	h.waiting[s] = slices.DeleteFunc(h.waiting[s], func(x *modelled) bool { return x == m })
	switch {
	case m.round == m.loses:
		m.ended = "error"
	case m.round < m.asks:
		m.round++
		h.waiting[s] = append(h.waiting[s], m)
		if len(h.waiting[s]) > modelFlows {
			h.end(s, h.waiting[s][0], "limits.flows")
		}
	default:
		m.ended = m.key
	}
}

func (h *house) end(s int, m *modelled, with string) {
	m.ended = with
	h.waiting[s] = slices.DeleteFunc(h.waiting[s], func(x *modelled) bool { return x == m })
}

// answer answers the newest question of a call, from its session or the other one, or an
// earlier question once more.
func (h *house) answer(s int, m *modelled, foreign, stale bool) {
	asked := m.asked()
	if stale && len(asked) < 2 || len(asked) == 0 {
		return
	}
	q := asked[len(asked)-1]
	if stale {
		q = asked[0]
	}
	from := h.convs[s]
	if foreign {
		from = h.convs[1-s]
	}
	_ = from.Answer(downstream.Caller{}, jsonrpc.Message{ID: q.ID, Result: []byte(`{"action":"accept","content":{"k":"v"}}`)})
	synctest.Wait()
	if m.ended == "" && !foreign && !stale {
		h.execute(s, m)
	}
}

func (h *house) cancel(s int, m *modelled) {
	h.convs[s].Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: fmt.Appendf(nil, `{"requestId":%s}`, m.id)})
	synctest.Wait()
	if m.ended == "" {
		h.end(s, m, "none")
	}
}

// wait lets time pass: calls whose client has left end.
func (h *house) wait() {
	pass(5 * time.Minute)
	for s := range h.waiting {
		for _, m := range slices.Clone(h.waiting[s]) {
			if m.left {
				h.end(s, m, "timeouts.grace")
			}
		}
	}
}

func (h *house) close(s int, cause sessions.Cause) {
	h.convs[s].Close(cause)
	synctest.Wait()
	h.open[s] = false
	with := "error"
	if cause == sessions.Removed {
		with = "none"
	}
	for _, m := range slices.Clone(h.waiting[s]) {
		h.end(s, m, with)
	}
}

// judge compares with the model: nothing is lost, doubled, crossed or hung.
func (h *house) judge() {
	h.t.Helper()
	for s := range h.calls {
		for _, m := range h.calls[s] {
			h.judgeCall(m)
		}
	}
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	for round, times := range h.server.executed {
		if times > 1 {
			h.t.Fatalf("%s ran %d times", round, times)
		}
	}
}

func (h *house) judgeCall(m *modelled) {
	h.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var got string
	if m.response != nil {
		got = string(m.response.Result)
		if m.response.Error != nil {
			got = "error " + m.response.Error.Message
		}
	}
	questions := 0
	for _, q := range m.sent {
		if q.Kind() == jsonrpc.Request {
			questions++
			if text, _ := rawjson.Text(rawjson.Get(q.Params, "message")); text != m.key {
				h.t.Fatalf("%s was asked %q", m.key, text)
			}
		}
	}
	switch {
	case m.ended == "" && m.ends > 0:
		h.t.Fatalf("%s waits, but it ended with %s", m.key, got)
	case m.ended != "" && m.ends != 1:
		h.t.Fatalf("%s ended %d times, not once with %s", m.key, m.ends, m.ended)
	case m.ended == "none" && m.response != nil && !strings.HasPrefix(got, "error"), m.ended != "none" && !strings.Contains(got, m.ended):
		h.t.Fatalf("%s ended with %q, not with %s", m.key, got, m.ended)
	case questions != m.round:
		h.t.Fatalf("%s was asked %d times, not %d", m.key, questions, m.round)
	case h.server.ran(m.key) > m.round+1:
		h.t.Fatalf("%s ran %d times after %d answers", m.key, h.server.ran(m.key), m.round)
	}
}

// Whatever clients do and in whatever order: each call ends as a reference model says, once,
// with its own answer, and nothing runs twice, or after it was cancelled.
func TestCallsEndAsTheModelSays_DI13(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			for range rapid.IntRange(1, 40).Draw(r, "steps") {
				s := rapid.IntRange(0, 1).Draw(r, "session")
				var m *modelled
				if n := len(h.calls[s]); n > 0 {
					m = h.calls[s][rapid.IntRange(0, n-1).Draw(r, "call")]
				}
				what := rapid.IntRange(0, 12).Draw(r, "what")
				switch {
				case what < 4 || m == nil:
					h.start(s, rapid.IntRange(0, 3).Draw(r, "asks"), rapid.IntRange(-1, 3).Draw(r, "loses"))
				case what < 8:
					h.answer(s, m, false, false)
				case what == 8:
					h.answer(s, m, rapid.Bool().Draw(r, "foreign"), true)
				case what == 9:
					h.answer(s, m, true, false)
				case what == 10:
					h.cancel(s, m)
				case what == 11:
					m.left = true
					m.gone.Store(true)
					h.wait()
				case rapid.IntRange(0, 3).Draw(r, "close") == 0 && h.open[s]:
					h.close(s, rapid.SampledFrom([]sessions.Cause{sessions.Removed, sessions.Expired, sessions.Evicted, sessions.Closed}).Draw(r, "cause"))
				}
				h.judge()
			}
			for s := range h.convs {
				if h.open[s] {
					h.close(s, sessions.Expired)
				}
				if n := len(h.convs[s].table.calls) + h.convs[s].table.questions.len(); n > 0 {
					t.Errorf("%d calls and questions are left", n)
				}
			}
			h.judge()
		})
	})
}
