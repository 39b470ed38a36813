// Package stub has the two MCP servers that the benchmark calls: Modern, which
// speaks 2026-07-28 only and refuses every request a modern server may refuse,
// and Legacy, which offers the same tools as a 2025-11-25 server with sessions
// and held streams. Both answer from pre-built text so that they cost as
// little as a server on net/http can. They own no policy about load; that is
// in package load.
package stub

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/bench/scan"
)

// Names of the tools that both servers offer. Every name that begins with
// Echo is an echo tool, so that a list of many tools can be called at random.
const (
	Echo  = "echo"  // answers at once with small JSON
	Ask   = "ask"   // one elicitation
	Ask3  = "ask3"  // three rounds with one elicitation each
	Steps = "steps" // an SSE response with StepCount progress notifications
	Big   = "big"   // a result of BigSize bytes of text
)

const (
	// StepCount is the number of progress notifications of a Steps call.
	StepCount = 10
	// BigSize is the size of the text of a Big call, in bytes as it stands in
	// the JSON.
	BigSize = 64 << 10
	// InputKey is the key of the only input request of a round.
	InputKey = "confirm"
)

// Rounds returns how many questions a tool asks.
func Rounds(tool string) int {
	switch tool {
	case Ask:
		return 1
	case Ask3:
		return 3
	}
	return 0
}

// EchoName names the i-th of n echo tools: Echo itself, then numbered ones.
func EchoName(i int) string {
	if i == 0 {
		return Echo
	}
	return fmt.Sprintf("%s-%05d", Echo, i)
}

// bigText is what follows the nonce in a Big result: text with escapes and
// characters outside ASCII, as a file or a web page has them.
var bigText = func() string {
	const line = `func main() {\n\tfmt.Println(\"héllo, wörld\") // a line as tools return them\n}\n`
	s := strings.Repeat(line, BigSize/len(line)+1)
	return s[:strings.LastIndex(s[:BigSize], `\n`)+2]
}()

// IsResult reports whether v, a raw JSON string, is the text that a call of
// tool with nonce must return. For the asking tools that holds the answer to
// the last question, which only the client that was asked can have given.
func IsResult(v []byte, tool, nonce string) bool {
	text, ok := scan.Text(v)
	if !ok {
		return false
	}
	if tool == Big {
		head := len(tool) + 1 + len(nonce)
		return len(text) == head+len(bigText) && string(text[head:]) == bigText &&
			string(text[:head]) == tool+":"+nonce
	}
	return string(text) == string(appendResultText(make([]byte, 0, 128), tool, nonce))
}

func appendResultText(dst []byte, tool, nonce string) []byte {
	dst = append(dst, tool...)
	dst = append(dst, ':')
	dst = append(dst, nonce...)
	if tool == Big {
		return append(dst, bigText...)
	}
	if n := Rounds(tool); n > 0 {
		dst = append(dst, ':')
		return AppendAnswer(dst, nonce, n-1)
	}
	return dst
}

// AppendAnswer appends the value that answers the question of a round.
func AppendAnswer(dst []byte, nonce string, round int) []byte {
	dst = append(dst, nonce...)
	dst = append(dst, '/')
	return strconv.AppendInt(dst, int64(round), 10)
}

// AppendQuestion appends the message of a round's question. A client checks
// that it holds its own nonce.
func AppendQuestion(dst []byte, nonce string, round int) []byte {
	dst = append(dst, "Confirm "...)
	return AppendAnswer(dst, nonce, round)
}

// appendElicitation appends the params of a form elicitation.
func appendElicitation(dst []byte, nonce string, round int) []byte {
	dst = append(dst, `{"mode":"form","message":"`...)
	dst = AppendQuestion(dst, nonce, round)
	return append(dst, `","requestedSchema":{"type":"object","properties":{"v":{"type":"string","title":"Value"}},"required":["v"]}}`...)
}

// appendContent appends the members of a tool result that both eras share.
func appendContent(dst []byte, tool, nonce string) []byte {
	dst = append(dst, `"content":[{"type":"text","text":"`...)
	dst = appendResultText(dst, tool, nonce)
	return append(dst, `"}]`...)
}

// toolsJSON renders the tools array: the five kinds, then echo tools up to n.
func toolsJSON(n int) string {
	var b strings.Builder
	const schema = `{"type":"object","properties":{"n":{"type":"string"},"text":{"type":"string"},"limit":{"type":"integer"}},"required":["n"]}`
	add := func(name string) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"%s","title":"%s","description":"Benchmark tool","inputSchema":%s}`, name, name, schema)
	}
	for _, name := range []string{Echo, Ask, Ask3, Steps, Big} {
		add(name)
	}
	for i := 1; i <= n-5; i++ {
		add(EchoName(i))
	}
	return "[" + b.String() + "]"
}

// known reports whether name is a tool of a server with n tools.
func known(name string, n int) bool {
	switch name {
	case Echo, Ask, Ask3, Steps, Big:
		return true
	}
	digits, ok := strings.CutPrefix(name, Echo+"-")
	if !ok {
		return false
	}
	i, err := strconv.Atoi(digits)
	return err == nil && i > 0 && i <= n
}
