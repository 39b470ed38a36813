package translate

import (
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestNotification(t *testing.T) {
	const dropped, none = "dropped", "none"
	tests := []struct {
		rule     string
		versions []mcp.Version
		method   string
		in, want string
	}{
		{"C-17", mcp.Legacy[:], "notifications/subscriptions/acknowledged", `{"notifications":{}}`, dropped},
		{"C-23", mcp.Legacy[:], "notifications/tasks", `{}`, dropped},
		{"C-19", mcp.Legacy[:], "notifications/cancelled", `{"requestId":1}`, dropped},
		{"C-22 subscriptionId", mcp.Legacy[:], "notifications/tools/list_changed", `{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`, none},
		{"C-22 other _meta", mcp.Legacy[:], "notifications/tools/list_changed", `{"_meta":{"io.modelcontextprotocol/subscriptionId":1,"a":2}}`, `{"_meta":{"a":2}}`},
		{"C-22 empty params", mcp.Legacy[:], "notifications/prompts/list_changed", `{}`, none},
		{"C-22 no params", mcp.Legacy[:], "notifications/resources/list_changed", ``, none},
		{"C-22 updated", mcp.Legacy[:], "notifications/resources/updated", `{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":"x"}}`, `{"uri":"a:b"}`},
		{"C-6 payload stays", mcp.Legacy[:], "notifications/message", `{"level":"info","data":{"message":1,"n":9007199254740993}}`, "="},
		{"C-5 message", []mcp.Version{r24}, "notifications/progress", `{"progressToken":0,"progress":0.50,"message":"m"}`, `{"progressToken":0,"progress":0.50}`},
		{"C-5 message", []mcp.Version{r25a, r25b, r25c}, "notifications/progress", `{"progressToken":0,"progress":0.50,"message":"m"}`, "="},
		{"C-9 unknown", mcp.Legacy[:], "notifications/acme", `{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`, `{}`},
		{"I-11 older than 2025-11-25", []mcp.Version{r24, r25a, r25b}, "notifications/elicitation/complete", `{"elicitationId":"a"}`, dropped},
		{"I-11", []mcp.Version{r25c}, "notifications/elicitation/complete", `{"elicitationId":"a"}`, "="},
	}
	for _, tt := range tests {
		for _, v := range tt.versions {
			t.Run(tt.rule+" "+string(v), func(t *testing.T) {
				got, ok := Rules{Version: v}.Notification(tt.method, []byte(tt.in))
				want := tt.want
				if want == "=" {
					want = tt.in
				}
				switch {
				case want == dropped:
					if ok {
						t.Errorf("was not dropped: %s", got)
					}
				case want == none:
					if !ok || got != nil {
						t.Errorf("got %s %v", got, ok)
					}
				case !ok || string(got) != want:
					t.Errorf("got %s %v, want %s", got, ok, want)
				}
			})
		}
	}
}

// C-2: the token, and where a round counts on from another one the numbers, change
// in place; everything else is as Notification leaves it.
func TestC2ProgressIsEditedInPlace(t *testing.T) {
	const in = `{ "progress":0.50, "x":[1],"progressToken":"p1", "total":10,"_meta":{"io.modelcontextprotocol/subscriptionId":1},"message":"m"}`
	for v, want := range map[mcp.Version][2]string{
		r24:  {`{ "progress":0.50, "x":[1],"progressToken":7, "total":10}`, `{ "progress":1.5, "x":[1],"progressToken":7, "total":11}`},
		r25c: {`{ "progress":0.50, "x":[1],"progressToken":7, "total":10,"message":"m"}`, `{ "progress":1.5, "x":[1],"progressToken":7, "total":11,"message":"m"}`},
	} {
		rules := Rules{Version: v}
		p := rules.Progress([]byte(in))
		if string(p.Token) != `"p1"` || string(p.Value) != "0.50" || string(p.Total) != "10" {
			t.Errorf("%s: read %s, %s, %s", v, p.Token, p.Value, p.Total)
		}
		if got := string(p.AppendTo(nil, []byte("7"), nil, nil)); got != want[0] {
			t.Errorf("%s: %s, want %s", v, got, want[0])
		}
		p = rules.Progress([]byte(in))
		if got := string(p.AppendTo([]byte("a"), []byte("7"), []byte("1.5"), []byte("11"))); got != "a"+want[1] {
			t.Errorf("%s: %s, want %s", v, got, want[1])
		}
	}
}
