package compat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// turn is one round of a generated flow: what the server asks, and with which
// state; both as they stand in the text.
type turn struct {
	keys  []string
	state string
}

// D-I1 to D-I7: however a server asks, each round repeats the request byte for
// byte, and carries the answers under the keys of the round before, and its
// state as it stood in the text, and nothing else.
func TestFlowsOfAnyShape_DI1_DI2_DI3_DI4_DI6_DI7(t *testing.T) {
	everyVersion(t, func(rt *rapid.T, w *world) {
		script := turns.Draw(rt, "turns")
		method := rapid.SampledFrom([]string{"tools/call", "prompts/get", "resources/read"}).Draw(rt, "method")
		var answers []answer
		for _, turn := range script {
			var entries []string
			for _, key := range turn.keys {
				entries = append(entries, key+`:{"method":"roots/list"}`)
			}
			round := `{"resultType":"input_required","inputRequests":{` + strings.Join(entries, ",") + `}`
			if turn.state != "" {
				round += `,"requestState":` + turn.state
			}
			answers = append(answers, result(round+"}"))
		}
		w.server.on(method, append(answers, result(`{"resultType":"complete","content":[],"messages":[],"contents":[]}`))...)
		n := 0
		w.client.answers["roots/list"] = func(string) string { n++; return fmt.Sprintf(`{"roots":[{"uri":"file:///%d"}]}`, n) }
		params := object(rt, 1, []string{`"uri":"u:1"`, `"name":"t"`})
		before := w.server.count()
		w.client.call(method, params)
		seen := w.server.since(before)
		if len(seen) != len(script)+1 {
			rt.Fatalf("D-T12: %d rounds for %d", len(seen), len(script)+1)
		}
		_, sent := members(rt, params)
		for i, x := range seen {
			names, got := members(rt, string(x.Params))
			for name, value := range sent {
				if got[name] != value {
					rt.Fatalf("D-I2: round %d: %s", i, x.Params)
				}
			}
			want := turn{}
			if i > 0 {
				want = script[i-1]
			}
			if got["requestState"] != want.state || slices.Contains(names, "requestState") != (want.state != "") {
				rt.Fatalf("D-I3, D-I4: round %d: state %s, want %s", i, got["requestState"], want.state)
			}
			if answered := strings.Count(got["inputResponses"], `"roots":[`); answered != len(want.keys) {
				rt.Fatalf("D-I6, D-I7: round %d: %s for %s", i, got["inputResponses"], want.keys)
			}
			if i > 0 {
				expectKeys(rt, got["inputResponses"], want.keys)
			}
		}
	})
}

// expectKeys compares names that may hold lone surrogates, which no decoder of
// Go keeps, by their UTF-16.
func expectKeys(rt *rapid.T, responses string, keys []string) {
	for _, key := range keys {
		found := false
		for at := 0; at < len(responses); at++ {
			if responses[at] != '"' {
				continue
			}
			end := at + 1
			for ; responses[end] != '"'; end++ {
				if responses[end] == '\\' {
					end++
				}
			}
			found = found || units(responses[at+1:end]) == units(key[1:len(key)-1])
			at = end
		}
		if !found {
			rt.Fatalf("D-I7: the key %s is not among %s", key, responses)
		}
	}
}

// units spells the inside of a JSON string with its escapes undone, lone
// surrogates kept apart.
func units(inside string) string {
	var b strings.Builder
	for i := 0; i < len(inside); i++ {
		switch {
		case inside[i] != '\\':
			b.WriteByte(inside[i])
		case inside[i+1] == 'u':
			var code rune
			_, _ = fmt.Sscanf(inside[i+2:i+6], "%04x", &code)
			if code >= 0xd800 && code < 0xe000 {
				fmt.Fprintf(&b, "<%x>", code)
			} else {
				b.WriteRune(code)
			}
			i += 5
		default:
			b.WriteByte(inside[i+1])
			i++
		}
	}
	return b.String()
}
