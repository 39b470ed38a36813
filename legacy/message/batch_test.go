package message

import (
	"slices"
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

// An answer that breaks off shows an id that is a question's, and no request.
func TestAnAnswerThatBreaksOffIsNoRequest(t *testing.T) {
	const request = `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`
	const answer = `,{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"method":"no"}}}]`
	for end := range len(request + answer) {
		for id := range Asked([]byte((request + answer)[:end])) {
			if id != "1" || end <= strings.Index(request, `"method"`) {
				t.Errorf("%s: %s", (request + answer)[:end], id)
			}
		}
	}
	for end := strings.Index(request, `,"params"`) + 1; end <= len(request); end++ {
		if got := slices.Collect(Asked([]byte(request[:end]))); len(got) != 1 {
			t.Errorf("%s: %v", request[:end], got)
		}
	}
	for _, broken := range []string{`[{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, `[{"jsonrpc":"2.0","id":1,"result":{]}}`} {
		if got := slices.Collect(Asked([]byte(broken))); len(got) != 0 {
			t.Errorf("%s: %v", broken, got)
		}
	}
}
