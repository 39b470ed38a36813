package vouch

// Reply reads the response to one request while it passes, for whether the server answered with
// a result. It keeps nothing of it: a byte is looked at once. Where it is in doubt the answer is no
// result, so that nobody is vouched for by what two readers may read in two ways.
type Reply struct {
	events  bool // the response is an event stream, each of whose messages is one of its own
	message object
	line    line
	decided bool
}

// NewReply returns a Reply of an event stream, or of one JSON message.
func NewReply(events bool) *Reply { return &Reply{events: events} }

// Read looks at what comes next, and reports once that a result is whole.
func (r *Reply) Read(p []byte) (result bool) {
	if r.decided {
		return false
	}
	if !r.events {
		for _, b := range p {
			r.message.next(b)
		}
		r.decided = r.message.state == whole
		return r.decided && r.message.isResult()
	}
	for _, b := range p {
		if result, r.decided = r.event(b); r.decided {
			return result
		}
	}
	return false
}

// event takes a byte of an event stream. Messages that are no response come before it.
func (r *Reply) event(b byte) (result, decided bool) {
	switch r.line.next(b) {
	case inData:
		r.message.next(b)
	case dataEnds:
		r.message.next('\n')
	case eventEnds:
		m := r.message
		r.message = object{}
		response := m.state != nothing && !m.asks
		return response && m.isResult(), response
	}
	return false, false
}

// line is where one is in the lines of an event stream.
type line struct {
	name [len(dataField)]byte // of the field, as far as it is of use
	n    int                  // how many bytes of the line came before its value
	data bool                 // the field is data, and this is its value
	rest bool                 // this is the value of a field
	cr   bool                 // the last byte ended a line, and a line feed is part of that
}

const dataField = "data"

type part uint8

const (
	elsewhere part = iota
	inData
	dataEnds
	eventEnds
)

func (l *line) next(b byte) part {
	if l.cr && b == '\n' {
		l.cr = false
		return elsewhere
	}
	l.cr = b == '\r'
	switch {
	case b == '\r' || b == '\n':
		empty, data := l.n == 0, l.data
		*l = line{cr: l.cr}
		switch {
		case empty:
			return eventEnds
		case data:
			return dataEnds
		}
	case l.data:
		return inData
	case l.rest:
	case b == ':':
		l.data, l.rest = l.n == len(l.name) && string(l.name[:]) == dataField, true
		l.n++
	default:
		if l.n < len(l.name) {
			l.name[l.n] = b
		}
		l.n++
	}
	return elsewhere
}

// object is a JSON object of which only the names of its own members are read.
type object struct {
	state   progress
	depth   int
	text    bool // within a string
	escaped bool // behind a backslash in one
	naming  bool // the string, or the next one, is the name of a member
	name    [longestName]byte
	n       int
	results int
	asks    bool // it has a method: it is no response
	other   bool // it has an error, or what may be read as one
}

type progress uint8

const (
	nothing progress = iota // but space
	begun
	whole
	broken // it is no object, or something comes behind it
)

// longestName is that of the names that matter, and one.
const longestName = len("result") + 1

// isResult reports whether it is a response with a result and nothing else.
func (o *object) isResult() bool { return o.state == whole && o.results == 1 && !o.other && !o.asks }

func (o *object) next(b byte) {
	switch {
	case o.text:
		o.inText(b)
	case o.state == broken || b == ' ' || b == '\t' || b == '\r' || b == '\n':
	case o.state == whole || o.state == nothing && b != '{':
		o.state = broken
	default:
		o.mark(b)
	}
}

// mark takes a byte outside of strings.
func (o *object) mark(b byte) {
	switch b {
	case '{', '[':
		o.state = begun
		o.depth++
		o.naming = o.depth == 1
	case '}', ']':
		if o.depth--; o.depth == 0 {
			o.state = whole
		}
	case ',':
		o.naming = o.depth == 1
	case '"':
		o.text, o.n = true, 0
	}
}

func (o *object) inText(b byte) {
	switch {
	case o.escaped:
		o.escaped = false
	case b == '\\':
		o.escaped = true
		o.other = o.other || o.naming // it may be any name
	case b == '"':
		o.text = false
		if o.naming {
			o.named()
		}
	case o.naming && o.n < len(o.name):
		o.name[o.n] = b
		o.n++
	}
}

// named takes the name of a member that has been read.
func (o *object) named() {
	o.naming = false
	switch string(o.name[:o.n]) {
	case "result":
		o.results++
	case "error":
		o.other = true
	case "method":
		o.asks = true
	}
}
