package passthrough

import (
	"bytes"
	"slices"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// answers finds, in an event stream that passes, which of its requests were answered. It keeps next to nothing of it:
// responses may be large.
type answers struct {
	of     *passage
	field  int  // how much of "data:" the line began with; -1: it is another one
	cr     bool // a line feed that follows belongs to the line before
	data   responses
	within []jsonrpc.ID // answered by the event that has yet to end
}

const dataField = "data:"

// in takes a part of the stream.
func (a *answers) in(part []byte) {
	for len(part) > 0 {
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			a.text(part)
			return
		}
		a.text(part[:end])
		a.endLine(part[end])
		part = part[end+1:]
	}
}

// text takes a part of a line.
func (a *answers) text(part []byte) {
	a.cr = a.cr && len(part) == 0
	for len(part) > 0 && a.field >= 0 && a.field < len(dataField) {
		if part[0] != dataField[a.field] {
			a.field = -1
			return
		}
		a.field++
		part = part[1:]
	}
	if a.field == len(dataField) {
		a.data.in(part, a.found)
	}
}

// endLine takes the end of a line. An empty line ends an event, which counts for its receiver only then.
func (a *answers) endLine(c byte) {
	if c == '\n' && a.cr {
		a.cr = false
		return
	}
	if a.field == 0 {
		a.of.answered(a.within)
		a.within, a.data = a.within[:0], responses{}
	}
	a.field, a.cr = 0, c == '\r'
}

// found notes a response. One that nobody asked for is none.
func (a *answers) found(id jsonrpc.ID) {
	if slices.Contains(a.of.due().ids, id) && !slices.Contains(a.within, id) {
		a.within = append(a.within, id)
	}
}

// responses finds the ids of the responses in a message, or an array of them, that comes in parts.
type responses struct {
	depth   int
	top     int // the depth of the members of a message
	text    bool
	escaped bool
	isValue bool   // of a member, its name is complete
	name    []byte // of a member of a message, as far as it matters
	value   []byte // of an id
	id      jsonrpc.ID
	answers bool // it has a result or an error
	calls   bool // it has a method: it is a request or a notification
}

// Bounds on what is kept of a member: longer ones are nothing that is looked for.
const (
	longestName = len(`"method"`) + 1
	longestID   = 1 << 10
)

// in takes a part of the text. That it is JSON is for its receiver to judge.
func (m *responses) in(part []byte, found func(jsonrpc.ID)) {
	for _, c := range part {
		switch {
		case m.text:
			m.keep(c)
			m.text, m.escaped = m.escaped || c != '"', !m.escaped && c == '\\'
		case c == '"':
			m.text = true
			m.keep(c)
		case c == '{' || c == '[':
			m.open(c)
		case c == '}' || c == ']':
			m.close(found)
		case m.depth == m.top:
			m.between(c)
		}
	}
}

// keep takes a character of a name or a value.
func (m *responses) keep(c byte) {
	switch {
	case m.depth != m.top:
	case !m.isValue && len(m.name) < longestName:
		m.name = append(m.name, c)
	case m.isValue && string(m.name) == `"id"` && len(m.value) <= longestID:
		m.value = append(m.value, c)
	}
}

// between takes what is no string at the depth of a message's members.
func (m *responses) between(c byte) {
	switch c {
	case ' ', '\t':
	case ':':
		m.isValue = true
	case ',':
		m.endMember()
	default:
		m.keep(c)
	}
}

// open begins an object or an array. What is outermost says where messages are.
func (m *responses) open(c byte) {
	if m.depth++; m.depth == 1 {
		if m.top = 1; c == '[' {
			m.top = 2
		}
	}
	if m.depth == m.top {
		*m = responses{depth: m.depth, top: m.top, name: m.name[:0], value: m.value[:0]}
	}
}

// close ends one, and thereby perhaps a message.
func (m *responses) close(found func(jsonrpc.ID)) {
	if m.depth == m.top && m.top > 0 {
		if m.endMember(); m.answers && !m.calls && m.id != "" {
			found(m.id)
		}
	}
	m.depth--
}

// endMember reads a member of a message.
func (m *responses) endMember() {
	switch string(m.name) {
	case `"id"`:
		m.id = jsonrpc.ID(m.value)
	case `"method"`:
		m.calls = true
	case `"result"`, `"error"`:
		m.answers = true
	}
	m.name, m.value, m.isValue = m.name[:0], m.value[:0], false
}
