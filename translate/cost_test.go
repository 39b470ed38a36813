package translate

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// The payloads below are as long as a server's may be. Each would take hours if what
// is done for one of its parts were done for each of the others, too.
const largest = 16 << 20

// Edits come almost in order, but need not: tools that are left out are edited behind
// all others.
func TestEditsOutOfOrderAreSorted(t *testing.T) {
	const good, bad = `{"name":"a","inputSchema":{}}`, `0`
	n := largest / 2 / (len(good) + 1)
	in := `{"tools":[` + strings.Repeat(bad+",", largest/2/(len(bad)+1)) + strings.TrimSuffix(strings.Repeat(good+",", n), ",") + `]}`
	got, err := Rules{Version: r25c}.Result(mcp.MethodToolsList, []byte(in))
	want := `{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","inputSchema":{"type":"object"}},`, n), ",") + `]}`
	if err != nil || string(got) != want {
		t.Errorf("%d bytes, want %d: %v", len(got), len(want), err)
	}
}

// References of a schema that is wrapped are moved behind the edits of all its parts.
func TestReferencesOfAWrappedSchemaAreMoved(t *testing.T) {
	const ref, header = `{"$ref":"#"}`, `{"x-mcp-header":"a"}`
	n := largest / 2 / (len(ref) + len(header) + 2)
	in := `{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"anyOf":[` +
		strings.TrimSuffix(strings.Repeat(ref+","+header+",", n), ",") + `]}}]}`
	got, err := Rules{Version: r25c}.Result(mcp.MethodToolsList, []byte(in))
	if err != nil || strings.Count(string(got), `"#/properties/result"`) != n {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Structured content is not gone over for each of the texts beside it, however many they are, and is
// found behind all that do not hold it: then it is there as the result and as that text.
func TestStructuredContentIsNotComparedWithEachText_B36(t *testing.T) {
	const block = `{"type":"text","text":"[]"},`
	structured := `[` + strings.TrimSuffix(strings.Repeat("0,", largest/8), ",") + `]`
	others := `"structuredContent":` + structured + `,"content":[` + strings.Repeat(block, largest/4/len(block))
	got, err := Rules{Version: r25b}.Result(mcp.MethodToolsCall, []byte(`{`+others+`{}]}`))
	if err != nil || len(got) < len(others)+len(structured) {
		t.Errorf("no text: %d bytes of %d, %v", len(got), len(others), err)
	}
	got, err = Rules{Version: r25b}.Result(mcp.MethodToolsCall, []byte(`{`+others+`{"type":"text","text":"`+structured+`"}]}`))
	if err != nil || strings.Count(string(got), structured) != 2 {
		t.Errorf("a text at the end: it is there %d times, %v", strings.Count(string(got), structured), err)
	}
}

// Texts that nest like the structured content have it gone over once each, not once more for each
// level: this took a minute.
func TestDeepStructuredContentIsComparedOnce_B36(t *testing.T) {
	nested := func(leaf string) string { return strings.Repeat("[", 240) + leaf + strings.Repeat("]", 240) }
	block := `{"type":"text","text":"` + nested("2") + `"},`
	in := `{"structuredContent":` + nested("1"+strings.Repeat(",1", 1<<17)) + `,"content":[` + strings.TrimSuffix(strings.Repeat(block, 600), ",") + `]}`
	got, err := Rules{Version: r25b}.Result(mcp.MethodToolsCall, []byte(in))
	if err != nil || len(got) < len(in) {
		t.Errorf("%d bytes of %d, %v", len(got), len(in), err)
	}
}

// Messages with several blocks become several messages. Each is made of its own edits.
func TestMessagesAreSplitByTheirOwnEdits_C7(t *testing.T) {
	const message, one = `{"role":"user","content":[{"type":"text","text":"a"}]}`, `{"role":"user","content":{"type":"text","text":"a"}}`
	n := largest / (len(message) + 1)
	in := `{"maxTokens":1,"messages":[` + strings.TrimSuffix(strings.Repeat(message+",", n), ",") + `]}`
	got, err := Rules{Version: r25b}.InputRequest(mcp.MethodSamplingCreateMessage, []byte(in), nil)
	if err != nil || strings.Count(string(got), one) != n {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// What a message has besides its blocks is repeated for each of them, within a bound.
func TestWhatSplitMessagesRepeatIsBounded_C7(t *testing.T) {
	const block = `{"type":"text","text":"a"}`
	in := func(messages, rest, blocks int) []byte {
		message := `{"x":"` + strings.Repeat("r", rest) + `","role":"user","content":[` + strings.TrimSuffix(strings.Repeat(block+",", blocks), ",") + `]},`
		return []byte(`{"maxTokens":1,"messages":[` + strings.TrimSuffix(strings.Repeat(message, messages), ",") + `]}`)
	}
	for _, tt := range []struct {
		messages, rest, blocks int
		expressed              bool
	}{{1, 1 << 20, 8, true}, {8, 1 << 17, 8, true}, {1, 1 << 23, 1, true}, {1, 1 << 20, 1 << 10, false}, {1 << 10, 1 << 10, 1 << 7, false}} {
		_, err := Rules{Version: r25b}.InputRequest(mcp.MethodSamplingCreateMessage, in(tt.messages, tt.rest, tt.blocks), nil)
		var u *Unexpressible
		if expressed := err == nil; expressed != tt.expressed || !expressed && !errors.As(err, &u) {
			t.Errorf("%+v: %v", tt, err)
		}
		if _, err = (Rules{Version: r25c}).InputRequest(mcp.MethodSamplingCreateMessage, in(tt.messages, tt.rest, tt.blocks), []byte(`{"sampling":{}}`)); err != nil {
			t.Errorf("%+v, as it is: %v", tt, err)
		}
	}
}

// A message of many blocks is gone over once, and not once more for each of them: this took minutes. Each of
// the others has edits of its own, and is made without what became of those before it.
func TestBlocksAreSplitWithoutTheOthers_C7(t *testing.T) {
	const block, one = `{"type":"text","text":"a"}`, `{"role":"user","content":{"type":"text","text":"a"}}`
	blocks := func(block string, n int) string { return strings.TrimSuffix(strings.Repeat(block+",", n), ",") }
	message := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	edited := `{"_meta":{},"role":"user","content":[{"type":"text","text":"a"}]}`
	for name, messages := range map[string]string{
		"one message of many blocks": message(blocks(block, largest/4/len(one))),
		"many messages with edits":   blocks(edited, largest/4/len(edited)),
		"both":                       blocks(edited, largest/8/len(edited)) + "," + message(blocks(block, largest/8/len(one))),
	} {
		got, err := Rules{Version: r25b}.InputRequest(mcp.MethodSamplingCreateMessage, []byte(`{"maxTokens":1,"messages":[`+messages+`]}`), nil)
		if n := strings.Count(messages, block); err != nil || string(got) != `{"maxTokens":1,"messages":[`+blocks(one, n)+`]}` {
			t.Errorf("%s: %d bytes for %d blocks, %v", name, len(got), n, err)
		}
	}
}
