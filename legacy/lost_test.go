package legacy

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// A client that comes back too late for a question is asked again: the question is what its call waits for.
func TestAClientThatComesBackTooLateForAQuestionIsAskedAgain_E20(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	b := newFake()
	_, p := serve(t, Options{Log: sessions.Limits{Events: 2}}, b)
	p.initialize(mcp.V20250618)
	answer := p.async(hold)
	k := <-b.held
	conv := b.last()
	conv.asksAgain = func(questions []string) {
		if strings.Join(questions, " ") != `"q"` {
			t.Errorf("asked again: %s", questions)
		}
		k.Reply.Send(downstream.Question(`"q"`, mcp.MethodPing, nil))
	}
	k.Send([]byte(note))
	stream := readEvents(t, <-answer)
	first, _, _ := strings.Cut(stream.next(), "|")
	k.Reply.Send(downstream.Question(`"q"`, mcp.MethodPing, nil))
	stream.next()
	for range 2 {
		k.Send([]byte(note))
		stream.next()
	}
	back := readEvents(t, p.get(first))
	for _, want := range []string{`notifications/x`, `notifications/x`, `"id":"q"`} {
		if got := back.next(); !strings.Contains(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	k.finish(`{}`)
}
