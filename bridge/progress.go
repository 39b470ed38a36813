package bridge

import (
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// progress makes one strictly rising sequence under the client's token out of
// many: every round counts from its own start, and heartbeats fill the gaps (C-4).
type progress struct {
	token    []byte // the client's, raw and with its type; nil: it wants none
	upstream []byte // of the round in flight
	started  bool   // something was sent to the client
	base     float64
	last     float64
	message  string // of the task, as last told (G-5)
}

// heartbeatStep is small against any server's own progress, so that heartbeats
// do not distort it.
const heartbeatStep = 0.001

// upstreamToken mints the token of a round: clients of two sessions both use 1 (B-5).
func (p *progress) upstreamToken(serial uint64, round int) []byte {
	b := strconv.AppendUint([]byte(`"p`), serial, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(round), 10)
	p.upstream = append(b, '"')
	return p.upstream
}

// nextRound makes the coming round count on from where the client is.
func (p *progress) nextRound() { p.base = p.last }

// rebase returns the value and the total that make upstream progress the client's,
// nil where they stay, or reports that it is not to be delivered (C-2 to C-4).
func (p *progress) rebase(from *translate.Progress) (value, total []byte, ok bool) {
	count, err := strconv.ParseFloat(string(from.Value), 64)
	count += p.base
	if err != nil || p.token == nil || string(from.Token) != string(p.upstream) || p.started && count <= p.last {
		return nil, nil, false
	}
	p.started, p.last = true, count
	if p.base == 0 {
		return nil, nil, true
	}
	if all, err := strconv.ParseFloat(string(from.Total), 64); err == nil {
		total = number(p.base + all)
	}
	return number(count), total, true
}

// beat returns params that say no more than that the call is alive.
func (p *progress) beat(message string) []byte {
	if p.started {
		p.last += heartbeatStep
	}
	p.started = true
	out := append([]byte(`{"progressToken":`), p.token...)
	out = append(out, `,"progress":`...)
	out = append(out, number(p.last)...)
	if message != "" {
		out = rawjson.AppendQuote(append(out, `,"message":`...), message)
	}
	return append(out, '}')
}

// number writes f with the digits that a sum of two decimals can be trusted for.
func number(f float64) []byte { return strconv.AppendFloat(nil, f, 'g', 15, 64) }

// heartbeat keeps clients that reset their timer on progress from giving up
// while a person decides (D-17). The caller holds mu.
func (k *call) heartbeat(now time.Time) {
	if k.beat.IsZero() || now.Before(k.beat) {
		return
	}
	k.beat = now.Add(k.conv.b.limits.Heartbeat)
	k.tell("Waiting for your answer")
}

// tell sends progress that counts nothing.
func (k *call) tell(message string) {
	if !k.conv.Version().AtLeast(mcp.V20250326) {
		message = "" // C-5
	}
	k.out.Send(downstream.Notification(mcp.NotificationProgress, k.progress.beat(message)))
}

// notify delivers an interim notification of the round in flight on the
// client's stream (section C.1). Nothing follows the response (C-11).
func (k *call) notify(msg jsonrpc.Message, burst *burst) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flow.State != mrtr.Sending || !k.out.Interactive() {
		return
	}
	switch msg.Method {
	case mcp.NotificationProgress:
		if burst.next() {
			k.due = time.Now().Add(k.conv.b.limits.Round) // progress resets the round, not the call
		}
		k.notifyProgress(msg.Params, burst)
		return
	case mcp.NotificationMessage:
		if !k.wantsLog(msg.Params) {
			return
		}
	case mcp.NotificationElicitationComplete:
		k.elicitationOver(msg.Params)
		return
	}
	if params, ok := k.conv.rules.Notification(msg.Method, msg.Params); ok {
		k.out.Queue(downstream.Notification(msg.Method, params))
	}
}

// notifyProgress delivers progress under the client's token.
func (k *call) notifyProgress(params []byte, burst *burst) {
	from := k.conv.rules.Progress(params)
	value, total, ok := k.progress.rebase(&from)
	if !ok {
		return
	}
	burst.params = from.AppendTo(burst.params[:0], k.progress.token, value, total)
	k.out.Queue(downstream.Notification(mcp.NotificationProgress, burst.params))
}

// wantsLog applies the session's present level to a message that the server
// filtered by the level at the time of the request (C-6, C-7).
func (k *call) wantsLog(params []byte) bool {
	if k.level == "" {
		return false
	}
	k.conv.mu.Lock()
	level := k.conv.level
	k.conv.mu.Unlock()
	severity, _ := rawjson.Text(rawjson.Get(params, "level"))
	return mcp.Severity(severity) >= mcp.Severity(level)
}
