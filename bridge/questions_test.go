package bridge

import (
	"testing"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestQuestionsAreFoundUntilTheyAreRemoved(t *testing.T) {
	var qs questions
	calls := [3]*call.Call{{}, {}, {}}
	for i, id := range []string{`"a"`, `"b"`, `"c"`} {
		qs.add(jsonrpc.ID(id), id, calls[i], false)
	}
	qs.remove(`"b"`)
	qs.remove(`"b"`)
	if q := qs.find(`"b"`); q != nil || qs.len() != 2 {
		t.Errorf("removed, but found %v of %d", q, qs.len())
	}
	if q := qs.find(`"c"`); q == nil || q.call != calls[2] || q.key != `"c"` {
		t.Errorf("found %v", q)
	}
	qs.remove(`"c"`)
	qs.remove(`"a"`)
	if qs.first != nil || qs.find(`"a"`) != nil {
		t.Error("something is left")
	}
}
