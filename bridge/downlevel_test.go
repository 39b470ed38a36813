package bridge

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/mcp"
)

const multiSelect = `"q":{"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{` +
	`"c":{"type":"array","minItems":1,"items":{"type":"string","enum":["red","blue"]}}},"required":["c"]}}}`

// oldSession is a session of a 2025-06-18 client.
func oldSession(t *testing.T, steps ...step) (*conversation, *script) {
	conv, up := session(t, Limits{}, steps...)
	conv.Rules.Version = mcp.V20250618
	conv.declare(nil, []byte(declaredByClient))
	return conv, up
}

func TestUnusableAnswerIsAskedForOnceMore_C26(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := oldSession(t, inputRequired(`"s"`, multiSelect), result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		if got := string(c.asked()[0].Params); strings.Contains(got, "array") {
			t.Fatalf("C.5: %s", got)
		}
		c.answer(0, `{"action":"accept","content":{}}`) // nothing chosen, one is the least
		if n := len(c.asked()); n != 2 || c.asked()[0].ID == c.asked()[1].ID {
			t.Fatalf("asked %d times", n)
		}
		c.answer(1, `{"action":"accept","content":{}}`)
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"cancel"}}` {
			t.Fatalf("got %s", got)
		}
		c.result()
	})
}

func TestUnaskableQuestionIsAnsweredForTheClient_Q12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := oldSession(t, inputRequired(`"s"`, multiSelect, `"r":{"method":"roots/list"}`), result(booked))
		conv.Rules.CancelMultiSelect = true
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		if n := len(c.asked()); n != 1 || c.asked()[0].Method != mcp.MethodRootsList {
			t.Fatalf("asked %d", n)
		}
		c.answer(0, `{"roots":[]}`)
		if got := member(up.calls()[1], "inputResponses"); got != `{"q":{"action":"cancel"},"r":{"roots":[]}}` {
			t.Fatalf("got %s", got)
		}
		c.result()
	})
}

func TestInexpressibleRoundHasNoSideEffects_C33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withTools := `"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}`
		conv, _ := oldSession(t, inputRequired(`"s"`, `"r":{"method":"roots/list"}`, withTools))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		if got := c.result(); len(c.sent) != 0 || !strings.Contains(got, "isError") {
			t.Fatalf("sent %v, got %s", c.sent, got)
		}
	})
}

func TestWrappedToolsStayWrapped_Q10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{},
			result(`{"tools":[{"name":"any","inputSchema":{"type":"object"},"outputSchema":{"anyOf":[{"type":"object"},{"type":"array"}]}}]}`),
			result(`{"content":[],"structuredContent":{"a":1}}`), result(`{"content":[],"structuredContent":{"a":1}}`))
		if got := request(t, conv, "1", mcp.MethodToolsList, `{}`).result(); !strings.Contains(got, `"result"`) {
			t.Fatalf("got %s", got)
		}
		if got := request(t, conv, "2", mcp.MethodToolsCall, `{"name":"any"}`).result(); !strings.Contains(got, `"structuredContent":{"result":{"a":1}}`) {
			t.Fatalf("got %s", got)
		}
		if got := request(t, conv, "3", mcp.MethodToolsCall, `{"name":"other"}`).result(); !strings.Contains(got, `"structuredContent":{"a":1}`) {
			t.Fatalf("got %s", got)
		}
	})
}

// TestWrappedToolsStayWrappedElsewhere_Q10: a session that goes on in another process, which has listed nothing, holds what it was shown.
func TestWrappedToolsStayWrappedElsewhere_Q10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const list = `{"tools":[{"name":"any","inputSchema":{"type":"object"},"outputSchema":{"anyOf":[{"type":"object"},{"type":"array"}]}}]}`
		const answer = `{"content":[],"structuredContent":{"a":1}}`
		here, _ := session(t, Limits{}, result(list))
		request(t, here, "1", mcp.MethodToolsList, `{}`).result()
		there, _, _ := elsewhere(t, here, result(answer), result(answer))
		for id, called := range map[string]string{"2": "any", "3": "other"} {
			want := `"structuredContent":{"a":1}`
			if called == "any" {
				want = `"structuredContent":{"result":{"a":1}}`
			}
			if got := request(t, there, id, mcp.MethodToolsCall, `{"name":"`+called+`"}`).result(); !strings.Contains(got, want) {
				t.Errorf("%s got %s", called, got)
			}
		}
		other, _ := session(t, Limits{})
		if err := other.Adopt([]byte(`{"v":1,"version":"2025-11-25"}`), here.Record()); err != nil || !other.WasShownWrapped([]byte(`"any"`)) {
			t.Errorf("a replica that had the session already does not learn of it: %v", err)
		}
	})
}
