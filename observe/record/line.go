package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Format names the form of a recording, and Version its revision.
const (
	Format  = "mcp-bridge-recording"
	Version = 1
)

// Head is the first line of a recording.
type Head struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Title says what it shows; "" in recordings that nobody named.
	Title string `json:"title,omitempty"`
	// Bridge is the version of the program.
	Bridge string    `json:"bridge,omitempty"`
	Began  time.Time `json:"began,omitzero"`
	// Payloads says that messages stand there as they were but for their secrets;
	// without, values are replaced by their kinds.
	Payloads bool `json:"payloads"`
	// Filter says in words what was left out; "": nothing.
	Filter string `json:"filter,omitempty"`
}

// Hops, as lines name them.
const (
	Down = "down" // between client and bridge
	Up   = "up"   // between bridge and server
)

// Directions, as lines name them.
const (
	In  = "in"  // to the bridge
	Out = "out" // from it
)

// Line is one message, and one line of a recording.
type Line struct {
	At      time.Time `json:"at,omitzero"`
	Hop     string    `json:"hop"`
	Dir     string    `json:"dir"`
	Mount   string    `json:"mount,omitempty"`
	Session uint64    `json:"session,omitempty"` // 0: of nobody in particular
	Call    uint64    `json:"call,omitempty"`    // 0: it belongs to none
	Round   int       `json:"round,omitempty"`   // of the hop to the server; 1 is the first
	// Kind is request, response, error, notification, question, answer or end; of what
	// somebody looks at also begun, for a call that was under way before; in
	// transcripts of HTTP also priming, for an event without data, and closed, for a
	// response stream that its reader left.
	Kind   string `json:"kind"`
	Method string `json:"method,omitempty"` // of a response: that of its request
	Status string `json:"status,omitempty"` // of a response: complete, input_required, an error's code, a cause
	Bytes  int    `json:"bytes,omitempty"`  // of params or result
	// MS is how long the response took, in milliseconds.
	MS   float64 `json:"ms,omitempty"`
	HTTP *HTTP   `json:"http,omitempty"` // in transcripts of HTTP
	// Message is the JSON-RPC message; absent when there was none, or it was too long.
	Message json.RawMessage `json:"message,omitempty"`
}

// HTTP is what carried a message.
type HTTP struct {
	Exchange int               `json:"exchange"` // counted over both hops from 1
	Method   string            `json:"method,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Status   int               `json:"status,omitempty"`
	Stream   bool              `json:"stream,omitempty"` // the response is an event stream
}

// LineOf returns an event as a line.
func LineOf(e *observe.Event) Line {
	l := Line{
		At: e.At.UTC(), Hop: Down, Dir: In, Mount: e.Mount, Session: e.Session, Call: e.Call, Round: e.Round, Kind: e.Kind,
		Method: e.Method, Status: e.Status, Bytes: e.Bytes, MS: float64(e.Took.Microseconds()) / 1000, Message: e.Body,
	}
	if e.Hop == observe.Upstream {
		l.Hop = Up
	}
	if e.Out {
		l.Dir = Out
	}
	return l
}

// Append appends a value as one line. Tokens of JSON keep their spelling.
func Append(dst []byte, value any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	lines := json.NewEncoder(buf)
	lines.SetEscapeHTML(false)
	err := lines.Encode(value)
	return buf.Bytes(), err
}

// maxLine bounds a line that is read, in bytes.
const maxLine = 64 << 20

// Read reads a recording. One that was cut off in the middle of its last line is
// returned without it.
func Read(from io.Reader) (Head, []Line, error) {
	var head Head
	in := bufio.NewScanner(from)
	in.Buffer(nil, maxLine)
	if !in.Scan() || json.Unmarshal(in.Bytes(), &head) != nil || head.Format != Format {
		return head, nil, errors.New("this is no recording: its first line does not say so")
	}
	if head.Version > Version {
		return head, nil, fmt.Errorf("the recording is of version %d, and this program reads version %d", head.Version, Version)
	}
	var lines []Line
	var broken error
	for number := 2; in.Scan(); number++ {
		if broken != nil {
			return head, lines, broken
		}
		var l Line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			broken = fmt.Errorf("line %d: %w", number, err)
			continue
		}
		l.Message = bytes.Clone(l.Message)
		lines = append(lines, l)
	}
	return head, lines, in.Err()
}
