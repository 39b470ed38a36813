// Package wiretest keeps golden transcripts of a bridge's work: both hops, in
// order, between the real peers of internal/peers. A change of what goes over
// the wire shows up as a diff of a file. Transcripts are recordings, as users make
// them. It owns the scenarios, no protocol code.
package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/internal/wirelog"
	"github.com/mcpbridge/bridge/observe/record"
)

// Lines returns the entries from an index on as the lines of a recording. Ids, tokens and
// session names that differ from run to run get names in order of appearance; everything
// else, spelling of JSON included, is what went over the wire. Housekeeping (discover,
// listens, GET and DELETE) is left out because its order is free.
func Lines(entries []wirelog.Entry, from int) []record.Line {
	names := newNames()
	lines := []record.Line{}
	for _, e := range settle(withoutHousekeeping(entries, from)) {
		l := record.Line{Hop: record.Down, Dir: record.Out, Kind: kindOf(e), HTTP: &record.HTTP{Exchange: e.Exchange, Status: e.Status}}
		toRight := e.Kind == wirelog.Request || e.Kind == wirelog.Abandoned
		if e.Hop == wirelog.Upstream {
			l.Hop = record.Up
		}
		if toRight == (l.Hop == record.Down) {
			l.Dir = record.In
		}
		if e.Kind == wirelog.Request {
			l.HTTP.Method, l.HTTP.Headers, l.HTTP.Stream = e.Method, headers(e.Header, names), e.Stream
		}
		if len(e.Data) > 0 {
			l.Message = names.replace(e)
		}
		lines = append(lines, l)
	}
	return numbered(lines)
}

// numbered counts the exchanges anew: those that were left out have numbers too.
func numbered(lines []record.Line) []record.Line {
	numbers := map[int]int{}
	for i := range lines {
		at := &lines[i].HTTP.Exchange
		if numbers[*at] == 0 {
			numbers[*at] = len(numbers) + 1
		}
		*at = numbers[*at]
	}
	return lines
}

// kindOf says what an entry is, in the words of recordings.
func kindOf(e wirelog.Entry) string {
	m := parse(e)
	switch {
	case e.Kind == wirelog.Priming:
		return "priming"
	case e.Kind == wirelog.Abandoned:
		return "closed"
	case m.Method != "" && m.ID == nil:
		return "notification"
	case m.Method != "" && e.Kind == wirelog.Request:
		return "request"
	case m.Method != "":
		return "question"
	case e.Kind == wirelog.Request:
		return "answer"
	case m.Error != nil:
		return "error"
	}
	return "response"
}

// Text renders lines for people.
func Text(lines []record.Line) string {
	var b strings.Builder
	for i := range lines {
		b.WriteString(heading(&lines[i]))
		if len(lines[i].Message) > 0 {
			b.WriteString(fit(lines[i].Message, "    "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func heading(l *record.Line) string {
	client, server := "C", "B"
	if l.Hop == record.Up {
		client, server = "B", "S"
	}
	if (l.Dir == record.In) != (l.Hop == record.Down) {
		return fmt.Sprintf("%s→%s %s\n", server, client, l.Kind)
	}
	if l.HTTP.Method == "" {
		return fmt.Sprintf("%s→%s %s\n", client, server, l.Kind)
	}
	answer := fmt.Sprint(l.HTTP.Status)
	if l.HTTP.Status == 0 {
		answer = "never answered"
	}
	if l.HTTP.Stream {
		answer += " event stream"
	}
	return fmt.Sprintf("%s→%s %s %s %v  ⇒ %s\n", client, server, l.HTTP.Method, l.Kind, l.HTTP.Headers, answer)
}

// shown are the headers of a transcript, besides Mcp-Param-*.
var shown = []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-Id"}

func headers(h http.Header, names *names) map[string]string {
	all := map[string]string{}
	for name := range h {
		if slices.Contains(shown, name) || strings.HasPrefix(name, "Mcp-Param-") {
			all[name] = h.Get(name)
		}
	}
	if session := all["Mcp-Session-Id"]; session != "" {
		all["Mcp-Session-Id"] = names.of("session", session)
	}
	return all
}

type message struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  json.RawMessage
}

func parse(e wirelog.Entry) (m message) {
	_ = json.Unmarshal(e.Data, &m) // not JSON: an empty message
	return m
}

func (m message) isResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// withoutHousekeeping looks at all entries, because a listen may have begun
// before from and go on after it.
func withoutHousekeeping(entries []wirelog.Entry, from int) []wirelog.Entry {
	skip := map[int]bool{}
	var kept []wirelog.Entry
	for i, e := range entries {
		if e.Kind == wirelog.Request {
			switch parse(e).Method {
			case "server/discover", "subscriptions/listen", "initialize", "notifications/initialized":
				skip[e.Exchange] = true
			}
		}
		// A client that drops its stream cancels nothing, and when it does so
		// is free.
		dropped := e.Kind == wirelog.Abandoned && e.Hop == wirelog.Downstream
		if i >= from && !skip[e.Exchange] && e.Method == http.MethodPost && !dropped {
			kept = append(kept, e)
		}
	}
	return kept
}

// unordered names the group of entries among which e's place is free, with a
// key to sort them by; "" when its place is fixed.
func unordered(e wirelog.Entry) (group string, key []byte) {
	m := parse(e)
	switch {
	case e.Hop == wirelog.Downstream && e.Kind == wirelog.Event && m.Method != "" && m.ID != nil:
		return "asks", []byte(m.Method)
	case e.Hop == wirelog.Downstream && e.Kind == wirelog.Request && m.isResponse():
		return "answers", m.Result
	}
	return "", nil
}

// settle sorts neighbours whose order is free: server requests of one round
// that run concurrently, and the client's answers to them.
func settle(entries []wirelog.Entry) []wirelog.Entry {
	for start := 0; start < len(entries); {
		end := start + 1
		kind, _ := unordered(entries[start])
		for kind != "" && end < len(entries) {
			if k, _ := unordered(entries[end]); k != kind {
				break
			}
			end++
		}
		slices.SortStableFunc(entries[start:end], func(a, b wirelog.Entry) int {
			_, ka := unordered(a)
			_, kb := unordered(b)
			return bytes.Compare(ka, kb)
		})
		start = end
	}
	return entries
}

// names gives run-dependent values names in order of appearance.
type names struct {
	known map[string]string // kind and value to name
	count map[string]int    // names given by kind
}

func newNames() *names { return &names{map[string]string{}, map[string]int{}} }

func (n *names) of(kind, value string) string {
	key := kind + " " + value
	if n.known[key] == "" {
		n.count[kind]++
		n.known[key] = fmt.Sprintf("%s-%d", kind, n.count[kind])
	}
	return n.known[key]
}

var identifiers = regexp.MustCompile(`"(id|progressToken|requestId|elicitationId)":\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)`)

// replace names the identifiers that the bridge minted: all ids and tokens
// upstream, and those of server requests downstream. The client's own stay.
func (n *names) replace(e wirelog.Entry) []byte {
	return identifiers.ReplaceAllFunc(e.Data, func(match []byte) []byte {
		parts := identifiers.FindSubmatch(match)
		member, value := string(parts[1]), string(parts[2])
		var name string
		switch {
		case member == "elicitationId":
			name = n.of("elicitation", value)
		case e.Hop == wirelog.Upstream && member == "progressToken":
			name = n.of("token", value)
		case e.Hop == wirelog.Upstream:
			name = n.of("up", value)
		case member == "id" && e.Kind == wirelog.Event && parse(e).Method != "":
			name = n.of("ask", value)
		case n.known["ask "+value] != "" && (member == "requestId" || parse(e).isResponse() && e.Kind == wirelog.Request):
			name = n.of("ask", value)
		default:
			return match
		}
		return fmt.Appendf(nil, `"%s":"%s"`, member, name)
	})
}
