package h1

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/bridge/internal/http1"
)

// head is what is known of the last request's head. The next one is mostly the
// same but for the length of its body: then the request is the same, too.
type head struct {
	remote string

	text   string // up to and with the blank line; "" when it cannot serve again
	digits int    // text[digits:after] is the body's length
	after  int    // 0 when there is no Content-Length

	req    http.Request // without body and context
	fields int          // of req.Header
	length int64        // of the body
}

// read judges the head at the beginning of b, of n bytes when it is whole.
func (h *head) read(b []byte) (n int, v verdict) {
	if n := h.repeated(b); n > 0 {
		return n, whole
	}
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return 0, unfinished(b)
	}
	n = end + len(headEnd)
	h.text = string(b[:n])
	if h.parse() {
		return n, whole
	}
	v = foreign
	if twoLengths(h.text) {
		v = refused
	}
	h.text = ""
	return 0, v
}

// twoLengths reports whether a head says in both ways how long its body is. Others
// on the way may believe the other one, and take a part of the body for the next
// request: RFC 9112 6.3 calls that smuggling. net/http would believe the coding
// and keep the connection.
func twoLengths(text string) bool {
	length, coding := false, false
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ":")
		name = http1.Trim(name) // of one that is malformed, too
		length = length || http1.EqualFold(name, "content-length")
		coding = coding || http1.EqualFold(name, "transfer-encoding")
	}
	return length && coding
}

var headEnd = []byte("\r\n\r\n")

// unfinished looks for the signs that a head, of which more is to come, is
// none of ours: we could wait in vain for its end.
func unfinished(b []byte) verdict {
	if b[0] < 'A' || b[0] > 'Z' {
		return foreign
	}
	for i := 0; ; {
		next := bytes.IndexByte(b[i:], '\n')
		if next < 0 {
			return partial
		}
		if i += next; i == 0 || b[i-1] != '\r' {
			return foreign
		}
		i++
	}
}

// repeated returns the length of the head at the beginning of b if it is the
// last one again, with any length of the body.
func (h *head) repeated(b []byte) int {
	if h.text == "" || len(b) < h.digits+1 {
		return 0
	}
	if h.after == 0 {
		if len(b) < len(h.text) || string(b[:len(h.text)]) != h.text {
			return 0
		}
		h.length = 0
		return len(h.text)
	}
	if string(b[:h.digits]) != h.text[:h.digits] {
		return 0
	}
	length, n, ok := http1.Digits(b[h.digits:])
	i, rest := h.digits+n, h.text[h.after:]
	if !ok || len(b)-i < len(rest) || string(b[i:i+len(rest)]) != rest {
		return 0
	}
	h.length = length
	return i + len(rest)
}

// check forgets the head if a handler changed it in spite of all.
func (h *head) check() {
	if len(h.req.Header) != h.fields {
		h.text = ""
	}
}

// parse makes the request of h.text. It reports false unless it is one of ours.
func (h *head) parse() bool {
	line, rest, _ := strings.Cut(h.text, "\r\n")
	h.req = http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: h.remote}
	if !h.requestLine(line) {
		return false
	}
	h.length, h.digits, h.after = 0, 0, 0
	h.req.Header = make(http.Header, strings.Count(rest, "\n"))
	host := false
	var values []string
	for {
		if line, rest, _ = strings.Cut(rest, "\r\n"); line == "" {
			break
		}
		name, value, ok := http1.CutField(line)
		if !ok {
			return false
		}
		switch name = canonical(name); name {
		case "Host":
			if host || !validHost(value) {
				return false
			}
			host, h.req.Host = true, value
			continue
		case "Content-Length":
			if h.after > 0 || !h.setLength(value, len(h.text)-len(rest)-len(line)-len("\r\n")) {
				return false
			}
			continue
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Pragma", "Http2-Settings":
			return false // net/http treats these specially
		}
		if values == nil {
			values = make([]string, 0, strings.Count(rest, "\n"))
		}
		h.add(name, value, &values)
	}
	h.fields = len(h.req.Header)
	return host
}

// add adds a field to the header. The values of all fields stand in one array.
func (h *head) add(name, value string, values *[]string) {
	if have, again := h.req.Header[name]; again {
		h.req.Header[name] = append(have, value)
		return
	}
	*values = append(*values, value)
	last := len(*values)
	h.req.Header[name] = (*values)[last-1 : last : last]
}

// requestLine takes METHOD SP TARGET SP HTTP/1.1 with a target in origin form.
func (h *head) requestLine(line string) bool {
	method, target, _ := strings.Cut(line, " ")
	target, ok := strings.CutSuffix(target, " HTTP/1.1")
	if !ok || !ours(method) || target == "" || target[0] != '/' {
		return false
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] >= 0x7f {
			return false
		}
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	h.req.Method, h.req.URL, h.req.RequestURI = method, u, target
	return true
}

func ours(method string) bool {
	switch method {
	case http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions, http.MethodHead, http.MethodPut:
		return true
	}
	return false
}

// setLength notes the length of the body, and where in the text the value is
// whose line begins at line.
func (h *head) setLength(value string, line int) bool {
	length, ok := http1.ParseLength(value)
	if !ok {
		return false
	}
	h.length = length
	h.digits = line + strings.IndexByte(h.text[line:], ':') + 1
	for h.text[h.digits] == ' ' || h.text[h.digits] == '\t' {
		h.digits++
	}
	h.after = h.digits + len(value)
	return true
}

// hostTable holds the characters that we take in a Host.
var hostTable = func() (table [256]bool) {
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.:[]_~%") {
		table[c] = true
	}
	return table
}()

func validHost(s string) bool {
	for i := range len(s) {
		if !hostTable[s[i]] {
			return false
		}
	}
	return s != ""
}

// canonical spells the name of a field as http.Header does.
func canonical(name string) string {
	upper := true
	for i := range len(name) {
		c := name[i]
		if upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			return http.CanonicalHeaderKey(name)
		}
		upper = c == '-'
	}
	return name
}

// verdict is what is known of a head.
type verdict int

const (
	partial verdict = iota // more is needed
	whole                  // it is one of ours
	long                   // it does not fit
	foreign                // it is net/http's
	refused                // nobody may serve it
	greedy                 // there is no memory for it
	gone                   // there will be none
)
