package translate

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// TestEveryKindOfQuestionIsTranslated: a kind is let through by its row in package mcp;
// what it needs here is wanted from whoever adds one.
func TestEveryKindOfQuestionIsTranslated(t *testing.T) {
	for k := range mcp.InputKinds {
		of := &questions[k]
		if of.request == nil || of.answer == nil || of.declare == nil || of.need == nil {
			t.Errorf("%s: %+v", k.Method(), of)
		}
	}
}

func TestAQuestionOfNoKindIsAnErrorOnItsWayDownAndUp(t *testing.T) {
	r := Rules{Version: mcp.V20251125}
	for _, method := range []string{"", "roots/read", "elicitation/createMany", mcp.MethodToolsCall} {
		if _, err := r.InputRequest(method, []byte(`{}`), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "unknown input") {
			t.Errorf("%q is asked: %v", method, err)
		}
		if _, err := r.InputResponse(method, []byte(`{}`), []byte(`{"roots":[]}`)); err == nil || !strings.Contains(err.Error(), "unknown input") {
			t.Errorf("%q is answered: %v", method, err)
		}
	}
}

// TestWhereNobodyStandsInNothingIsSaid: of what is no kind no setting is named, and none
// where there is none.
func TestWhereNobodyStandsInNothingIsSaid(t *testing.T) {
	if got := Setting(mcp.InputKinds); got != "" {
		t.Error(got)
	}
	had := questions[mcp.Roots].setting
	t.Cleanup(func() { questions[mcp.Roots].setting = had })
	questions[mcp.Roots].setting = ""
	if got := (Rules{}).switchable([]byte(`{"roots":{}}`)); got != "" {
		t.Error(got)
	}
}
