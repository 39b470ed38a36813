package message

import (
	"strings"
	"testing"
)

func TestBatchIsSortedByKind_E14(t *testing.T) {
	b, err := ParseBatch([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"method":7}]`), 3)
	if err != nil || len(b.Requests) != 1 || len(b.Notifications) != 1 || len(b.Broken) != 1 || len(b.Responses) != 0 {
		t.Fatalf("%+v, %v", b, err)
	}
	if got := string(Array(b.Broken)); !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":2,"error":`) {
		t.Error(got)
	}
	for text, says := range map[string]string{
		`[1,2,3,4]`: "more than 3 messages",
		`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]`: "must not mix",
		`[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`:                             "must not be part",
		`[]`: "at least one",
	} {
		if _, err := ParseBatch([]byte(text), 3); err == nil || !strings.Contains(err.Message, says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
