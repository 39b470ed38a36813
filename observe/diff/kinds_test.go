package diff

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// TestEveryKindOfQuestionHasItsRule: a kind is let through by its row in package mcp; by which
// rule of docs/translation.md it changes is wanted here. None is taken for another's.
func TestEveryKindOfQuestionHasItsRule(t *testing.T) {
	for _, op := range []Op{Added, Changed, Removed} {
		for k := range mcp.InputKinds {
			if len(rulesOf(Question, k.Method(), []string{"params", "x"}, op)) == 0 {
				t.Errorf("no rule says what of the params of %s is %s", k.Method(), op)
			}
		}
		if got := rulesOf(Question, "elicitation/createMany", []string{"params", "mode"}, op); got != nil {
			t.Errorf("%s of a question of no kind, by %v", op, got)
		}
	}
}
