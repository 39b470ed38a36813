package metrics

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestEveryKindOfQuestionHasALabel(t *testing.T) {
	for k := range mcp.InputKinds {
		if methodWord(k.Method()) != k.Method() {
			t.Errorf("%s counts as %s", k.Method(), methodWord(k.Method()))
		}
	}
}
