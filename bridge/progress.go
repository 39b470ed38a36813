package bridge

import (
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
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

// progressToken returns the client's token: a string or an integer, 0 included (P-7).
func progressToken(params []byte) []byte {
	token := rawjson.Get(rawjson.Get(params, "_meta"), "progressToken")
	switch rawjson.KindOf(token) {
	case rawjson.String, rawjson.Number:
		return token
	}
	return nil
}

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

// rebase appends to edits what makes upstream progress params the client's, or
// reports that the notification is not to be delivered (C-2 to C-4).
func (p *progress) rebase(edits []rawjson.Edit, params []byte) (_ []rawjson.Edit, ok bool) {
	if p.token == nil {
		return nil, false
	}
	var token, count, total []byte
	for name, value := range rawjson.Members(params) {
		switch string(name) {
		case "progressToken":
			token = value
		case "progress":
			count = value
		case "total":
			total = value
		}
	}
	value, err := strconv.ParseFloat(string(count), 64)
	value += p.base
	if err != nil || string(token) != string(p.upstream) || p.started && value <= p.last {
		return nil, false
	}
	p.started, p.last = true, value
	edits = append(edits, rawjson.Edit{Name: "progressToken", Value: p.token})
	if p.base != 0 {
		edits = append(edits, rawjson.Edit{Name: "progress", Value: number(value)})
		if total, err := strconv.ParseFloat(string(total), 64); err == nil {
			edits = append(edits, rawjson.Edit{Name: "total", Value: number(p.base + total)})
		}
	}
	return edits, true
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
// while a person decides (FIELD-NOTES 1.12, D-17). The caller holds mu.
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
	k.out.Send(jsonrpc.AppendNotification(nil, mcp.NotificationProgress, k.progress.beat(message)))
}

// notify delivers an interim notification of the round in flight on the
// client's stream (section C.1). Nothing follows the response (C-11).
func (k *call) notify(msg jsonrpc.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flow.State != mrtr.Sending || !k.out.Interactive() {
		return
	}
	switch msg.Method {
	case mcp.NotificationProgress:
		k.due = time.Now().Add(k.conv.b.limits.Round) // progress resets the round, not the call
		k.notifyProgress(msg.Params)
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
		k.out.Queue(jsonrpc.AppendNotification(nil, msg.Method, params))
	}
}

// progressHead begins a progress notification.
const progressHead = `{"jsonrpc":"2.0","method":"` + mcp.NotificationProgress + `","params":`

// notifyProgress delivers progress under the client's token. There may be many of
// these, so the message is written once, into memory of its own.
func (k *call) notifyProgress(params []byte) {
	var space [3]rawjson.Edit
	edits, ok := k.progress.rebase(space[:0], params)
	if !ok {
		return
	}
	msg := make([]byte, 0, len(progressHead)+len(params)+len(k.progress.token)+8)
	msg = k.conv.rules.AppendProgress(append(msg, progressHead...), params, edits...)
	k.out.Queue(append(msg, '}'))
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
