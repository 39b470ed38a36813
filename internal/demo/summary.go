package demo

import (
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/internal/wirelog"
)

// summarize says what just happened, with the numbers of this run.
func (s *screen) summarize(entries []wirelog.Entry, answered bool) {
	t := count(entries)
	s.print("\n")
	s.say(bold, " ", "What just happened")
	s.print("\n")
	for _, text := range []string{
		fmt.Sprintf("The old client sent %s and was asked %s, the way it has always known: over one session, on one stream.", times(t.calls, "call"), times(t.questions, "question")),
		fmt.Sprintf("The server never asked anybody anything: it ended each request with input_required, and %s arrived at %d replicas that share no memory and keep no connection.", times(t.rounds, "separate request"), replicas),
		fmt.Sprintf("In between, the bridge held the call open, matched each answer to its question and sent the call again with the answers and the server's request state, untouched (%s). The client never saw that state.", times(t.states, "time")),
		t.waiting(answered),
		"Neither side was changed, and neither knows the other's protocol.",
	} {
		if text != "" {
			s.say(plain, " · ", text)
		}
	}
}

func (t tally) waiting(answered bool) string {
	inside := t.inside.Round(10 * time.Microsecond)
	if !answered {
		return fmt.Sprintf("The bridge itself took %v for all of it, both hops included.", inside)
	}
	return fmt.Sprintf("You took %v to answer. The bridge itself took %v for all of it.", t.asking.Round(100*time.Millisecond), inside)
}

func times(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// invite says how to try the same with one's own client.
func (s *screen) invite(bridge, server string) {
	s.print("\n")
	s.say(bold, " ", "Try it with your own client")
	s.print("\n")
	for _, l := range [][2]string{
		{"Claude Code", "claude mcp add --transport http flights " + bridge},
		{"Cursor, VS Code", `"flights": { "type": "http", "url": "` + bridge + `" }`},
		{"Inspector", "npx @modelcontextprotocol/inspector, Streamable HTTP, " + bridge},
		{"curl", "curl -s " + bridge + " \\"},
		{"", "  -H 'Content-Type: application/json' \\"},
		{"", "  -H 'Accept: application/json, text/event-stream' \\"},
		{"", `  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`},
	} {
		s.print(fmt.Sprintf("   %s%s%s\n", s.paint(cyan, l[0]), pad(17-len(l[0])), l[1]))
	}
	s.print("\n")
	s.say(dim, "   ", "The server without the bridge refuses all of these: "+server)
}
