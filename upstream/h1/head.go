package h1

import (
	"bufio"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
)

func malformed(what string) error { return fmt.Errorf("%w: %s", http1.ErrMalformed, what) }

// head is a parsed response head.
type head struct {
	text    []byte // all lines, without the blank one
	status  int
	length  int64  // -1 when not announced
	spelled []byte // that length, as it stands in text
	chunked bool
	close   bool // the connection ends with this response
	media   string
	reuse   time.Duration // how long the connection may be idle; 0: not announced
}

// readHead reads a response head, past interim responses, which count towards the limit.
// nothing reports that the connection ended before the first byte.
func (h *head) readHead(br *bufio.Reader, limit int) (nothing bool, err error) {
	for h.status = 100; h.status < 200; limit -= len(h.text) {
		nothing, err = h.readLines(br, limit)
		if err == nil {
			err = h.parse()
		}
		switch {
		case err != nil && http1.IsHTTP2(h.text):
			return false, http1.ErrHTTP2
		case err != nil:
			return nothing, err
		case h.status == 101:
			return false, malformed("unexpected upgrade")
		}
	}
	return false, nil
}

// readLines collects the lines up to the blank one.
func (h *head) readLines(br *bufio.Reader, limit int) (nothing bool, err error) {
	h.text = h.text[:0]
	for start := 0; ; { // of the current line
		part, err := br.ReadSlice('\n')
		if len(h.text)+len(part) > limit {
			return false, malformed("head too large")
		}
		h.text = append(h.text, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil:
			return len(h.text) == 0, err
		}
		if line := h.text[start:]; len(line) == 1 || len(line) == 2 && line[0] == '\r' {
			h.text = h.text[:start]
			return false, nil
		}
		start = len(h.text)
	}
}

// parse reads the status line and the fields that frame the body.
func (h *head) parse() error {
	line, rest := http1.CutLine(h.text)
	version, err := h.statusLine(line)
	if err != nil {
		return err
	}
	h.length, h.chunked, h.media, h.reuse = -1, false, "", 0
	h.close = version == 0
	for len(rest) > 0 {
		line, rest = http1.CutLine(rest)
		name, value, ok := http1.CutField(line)
		if !ok {
			return malformed("header field")
		}
		if err := h.field(name, value, version); err != nil {
			return err
		}
	}
	if h.chunked && h.length >= 0 { // the coding counts; such a peer is not trusted twice
		h.length, h.close = -1, true
	}
	return nil
}

// statusLine sets the status and returns the minor version.
func (h *head) statusLine(line []byte) (minor int, err error) {
	const form = "HTTP/1.x 200"
	if len(line) < len(form) || string(line[:7]) != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' ||
		len(line) > len(form) && line[len(form)] != ' ' {
		return 0, malformed("status line")
	}
	h.status = 0
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return 0, malformed("status")
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 {
		return 0, malformed("status")
	}
	return int(line[7] - '0'), nil
}

// field looks at one field. Names are compared in the order of likelihood.
func (h *head) field(name, value []byte, version int) error {
	switch {
	case http1.EqualFold(name, "content-length"):
		// Again it must be spelled alike, or others on the way may read another length
		// from it (RFC 9112 6.3).
		n, ok := http1.ParseLength(value)
		if !ok || h.length >= 0 && string(value) != string(h.spelled) {
			return malformed("content length")
		}
		h.length, h.spelled = n, value
	case http1.EqualFold(name, "content-type"):
		if h.media == "" {
			h.media = http1.MediaType(value)
		}
	case http1.EqualFold(name, "transfer-encoding"):
		if h.chunked || version == 0 || !http1.EqualFold(value, "chunked") {
			return malformed("transfer encoding")
		}
		h.chunked = true
	case http1.EqualFold(name, "connection"):
		if http1.HasElement(value, "close") {
			h.close = true
		}
	case http1.EqualFold(name, "keep-alive"):
		if timeout, ok := http1.KeepAlive(value); ok {
			h.reuse = http1.ReuseFor(timeout)
			h.close = h.close || h.reuse == 0
		}
	}
	return nil
}

// Values returns the values of a header field, in their order.
func (h *head) Values(name string) []string {
	var all []string
	_, rest := http1.CutLine(h.text)
	for len(rest) > 0 {
		var line []byte
		line, rest = http1.CutLine(rest)
		if n, v, ok := http1.CutField(line); ok && http1.EqualFold(n, name) {
			all = append(all, string(v))
		}
	}
	return all
}
