package ends

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// TestAnAnswerToEveryKindOfQuestionIsRead: a kind is let through by its row in package mcp;
// how its answers say no is wanted here.
func TestAnAnswerToEveryKindOfQuestionIsRead(t *testing.T) {
	for k := range mcp.InputKinds {
		if outcomes[k] == nil {
			t.Errorf("nobody knows what an answer to %s says", k.Method())
		} else if k.AsksPerson() && OutcomeOf(k.Method(), []byte(`{"action":"decline"}`)) != observe.Declined {
			t.Errorf("a person who declined %s has accepted it", k.Method())
		}
	}
	if got := OutcomeOf("elicitation/createMany", []byte(`{"action":"accept"}`)); got != observe.ClientError {
		t.Errorf("a question of no kind: %v", got)
	}
}
