package bridge

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/mcp"
)

// TestWhatAClientHasAnsweredIsStoredByName: another order of the kinds, or one more in
// between, must not make something else of a record.
func TestWhatAClientHasAnsweredIsStoredByName(t *testing.T) {
	conv, _ := session(t, Limits{})
	conv.Trust(mcp.Elicitation)
	conv.Trust(mcp.Roots)
	var stored map[string]any
	if err := json.Unmarshal(conv.Record(), &stored); err != nil {
		t.Fatal(err)
	}
	if names, _ := json.Marshal(stored["proven"]); string(names) != `["elicitation","roots"]` || stored["served"] != nil {
		t.Errorf("stored: %s, %v", names, stored["served"])
	}
	there, _ := session(t, Limits{})
	record, err := readRecord(conv.Record())
	if err != nil {
		t.Fatal(err)
	}
	there.fill(record)
	for k, want := range map[mcp.InputKind]bool{mcp.Elicitation: true, mcp.Sampling: false, mcp.Roots: true} {
		if got := there.breaker.proven().Has(k); got != want {
			t.Errorf("%s: %v", k.Method(), got)
		}
	}
}

// TestRecordsOfEarlierVersionsSayWhatWasAnsweredInBits, a bit each.
func TestRecordsOfEarlierVersionsSayWhatWasAnsweredInBits(t *testing.T) {
	for text, want := range map[string][]string{
		`{"v":1,"version":"2025-11-25"}`:                                       nil,
		`{"v":1,"version":"2025-11-25","served":5}`:                            {"elicitation", "roots"},
		`{"v":1,"version":"2025-11-25","served":2}`:                            {"sampling"},
		`{"v":1,"version":"2025-11-25","served":1,"proven":["elicitation"]}`:   {"elicitation"},
		`{"v":1,"version":"2025-11-25","proven":["a kind of a later bridge"]}`: {"a kind of a later bridge"},
	} {
		record, err := readRecord([]byte(text))
		if err != nil || !slices.Equal(record.Proven, want) {
			t.Errorf("%s: %v, %v", text, record, err)
			continue
		}
		conv, _ := session(t, Limits{})
		conv.fill(record)
		for k := range mcp.InputKinds {
			if conv.breaker.proven().Has(k) != slices.Contains(want, k.Capability()) {
				t.Errorf("%s: %s", text, k.Capability())
			}
		}
	}
}

func TestNobodyIsTrustedOrDistrustedWithWhatIsNoKind(t *testing.T) {
	conv, _ := session(t, Limits{})
	before := string(conv.Record())
	conv.Trust(mcp.InputKinds)
	conv.Distrust(mcp.InputKinds, call.ForGood)
	conv.Distrust(mcp.InputKinds, time.Minute)
	if after := string(conv.Record()); after != before {
		t.Errorf("%s, before %s", after, before)
	}
}
