package mrtr

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/mcpbridge/bridge/rawjson"
)

// Progress makes one strictly rising sequence under the client's token out of many:
// every round counts for itself, and heartbeats fill the gaps (C-4).
type Progress struct {
	Token   json.RawMessage `json:"token,omitempty"`   // the client's, raw and with its type; nil: it wants none
	Started bool            `json:"started,omitempty"` // something was sent to the client
	Fresh   bool            `json:"fresh,omitempty"`   // nothing of the present round was yet
	Base    float64         `json:"base,omitempty"`    // what is added in the present round
	Last    float64         `json:"last,omitempty"`    // what the client was told last
	Message string          `json:"message,omitempty"` // of the task, as last told (G-5)
}

// heartbeatStep is small against any server's own progress, so that heartbeats
// do not distort it.
const heartbeatStep = 0.001

func (p *Progress) count(value, total []byte) (told, of []byte, ok bool) {
	count, err := strconv.ParseFloat(string(value), 64)
	if err != nil || p.Token == nil {
		return nil, nil, false
	}
	if p.Fresh { // a server that counts on by itself is let (C-4)
		p.Fresh = false
		if p.Started && count > p.Last {
			p.Base = 0
		}
	}
	if p.Base != 0 {
		count = tidy(count+p.Base, p.Last)
	}
	if p.Started && count <= p.Last || math.IsInf(count, 0) {
		return nil, nil, false
	}
	p.Started, p.Last = true, count
	if p.Base == 0 {
		return nil, nil, true
	}
	if all, err := strconv.ParseFloat(string(total), 64); err == nil {
		of = number(tidy(p.Base+all, math.Inf(-1)))
	}
	return number(count), of, true
}

// nextRound makes the coming round count on from where the client is.
func (p *Progress) nextRound() { p.Base, p.Fresh = p.Last, true }

// say makes act tell the client that its call is alive, by progress that counts next
// to nothing; nothing counts on from the largest number that there is.
func (p *Progress) say(act *Action, message string) {
	if p.Started {
		next := max(tidy(p.Last+heartbeatStep, p.Last), math.Nextafter(p.Last, math.Inf(1)))
		if math.IsInf(next, 0) {
			return
		}
		p.Last = next
	}
	p.Started = true
	act.Say, act.Count = message, p.Last
}

// Params returns those of a notification that tells count and message; empty: none.
func (p *Progress) Params(count float64, message string) []byte {
	out := append([]byte(`{"progressToken":`), p.Token...)
	out = append(append(out, `,"progress":`...), number(count)...)
	if message != "" {
		out = rawjson.AppendQuote(append(out, `,"message":`...), message)
	}
	return append(out, '}')
}

// tidy rounds a sum to the digits that one of two decimals can be trusted for, where it stays above last. Whole
// numbers are exact as they are.
func tidy(sum, last float64) float64 {
	if sum == math.Trunc(sum) {
		return sum
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(sum, 'g', 15, 64), 64)
	if err != nil || rounded <= last || math.Abs(rounded-sum) >= heartbeatStep {
		return sum
	}
	return rounded
}

// number writes f as JSON that reads back as the same: in full, as programs that count expect it, unless that is long. What
// is too big for a number is the largest one.
func number(f float64) []byte {
	f = min(max(f, -math.MaxFloat64), math.MaxFloat64)
	format := byte('f')
	if size := math.Abs(f); size >= 1e21 || size != 0 && size < 1e-6 {
		format = 'e'
	}
	return strconv.AppendFloat(nil, f, format, -1, 64)
}
