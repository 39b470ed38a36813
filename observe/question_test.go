package observe

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestEveryKindOfQuestionHasAWord(t *testing.T) {
	for k := range mcp.InputKinds {
		if KindOf(k.Method(), "") == Kinds {
			t.Errorf("who watches has no word for %s", k.Method())
		}
	}
	for k := range Kinds {
		if got := KindOf(k.Method(), k.String()); got != k || k.String() == "" {
			t.Errorf("%s is taken for %s", k, got)
		}
	}
}

func TestElicitationsAreToldApartByMode(t *testing.T) {
	for mode, want := range map[string]Kind{"": Form, "form": Form, "url": URL, "odd": Form} {
		if got := KindOf(mcp.MethodElicitationCreate, mode); got != want {
			t.Errorf("%q: %s", mode, got)
		}
	}
}

func TestAQuestionOfNoKindIsNotTakenForAnother(t *testing.T) {
	k := KindOf("elicitation/createMany", "form")
	if k != Kinds || k.String() != "unknown" || k.Method() != "" || k.AsksPerson() {
		t.Errorf("%s", k)
	}
}
