package demo

import (
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/internal/wirelog"
)

// summarize says it all once more. asked says that the client was asked itself, answered
// that a person did.
func (s *screen) summarize(entries []wirelog.Entry, asked, answered bool) {
	t := count(entries)
	s.print("\n")
	s.say(bold, " ", "What just happened")
	s.print("\n")
	for _, text := range []string{
		t.client(asked),
		fmt.Sprintf("The server held nothing open. Whenever it needed an answer it ended the request with input_required, so %s came in, spread over replicas that share no memory.", times(t.rounds, "separate request")),
		fmt.Sprintf("The bridge kept the call, matched each answer to its question and sent the call again with the answer and the server's request state, byte for byte, %s. The client never saw that state.", times(t.states, "time")),
		t.waiting(asked, answered),
		"Neither side was changed, and neither knows the other's protocol.",
	} {
		s.say(plain, "  · ", text)
	}
}

func (t tally) client(asked bool) string {
	if !asked {
		return fmt.Sprintf("The old client knows no questions. Its person answered them on a page of the bridge, and the client sent the same call again, %s altogether, until it was done.", times(t.calls, "call"))
	}
	return fmt.Sprintf("The old client sent %s and was asked %s on that call's open stream, as it has always known it.", times(t.calls, "call"), times(t.questions, "question"))
}

func (t tally) waiting(asked, answered bool) string {
	if !asked {
		return "No call ran twice: what was answered on the page waited for the client to call again."
	}
	inside := t.inside.Round(100 * time.Microsecond)
	if !answered {
		return fmt.Sprintf("All the bridge's work together took %v, first connections included.", inside)
	}
	return fmt.Sprintf("You took %v to answer. All the bridge's work together took %v, first connections included.", t.asking.Round(100*time.Millisecond), inside)
}

func times(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// invite says how to try the same with one's own client. Every command fits 80
// columns, so that it can be copied whole.
func (s *screen) invite(bridge, server string) {
	s.print("\n")
	s.say(bold, " ", "Try it with your own client: "+bridge)
	s.print("\n")
	for _, l := range [][2]string{
		{"Claude Code", "claude mcp add -t http flights " + bridge},
		{"mcp.json", `"flights":{"type":"http","url":"` + bridge + `"}`},
		{"Inspector", "npx @modelcontextprotocol/inspector  (Streamable HTTP)"},
		{"curl", "curl -s " + bridge + " \\"},
		{"", "  -H 'Content-Type: application/json' \\"},
		{"", "  -H 'Accept: application/json, text/event-stream' \\"},
		{"", `  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`},
	} {
		s.print(fmt.Sprintf("   %s%s%s\n", s.paint(cyan, l[0]), pad(14-len(l[0])), l[1]))
	}
	s.print("\n")
	s.say(dim, "   ", "Without the bridge the server refuses them all; see for yourself: "+server)
	s.print("\n")
	s.say(bold, " ", "What your client sends appears here. Ctrl-C ends the demo.")
	s.print("\n")
}

// point says where both hops can be watched in a browser.
func (s *screen) point(view string) {
	if view == "" {
		return
	}
	s.say(bold, " ", "Watch it in a browser: "+view)
	s.print("\n")
}
