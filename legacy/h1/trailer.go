package h1

import (
	"net/http"
	"strings"

	"github.com/mcpbridge/bridge/internal/http1"
)

// declare notes the fields that the handler will set behind the body.
func (w *response) declare(values []string) {
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			switch name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name {
			case "Transfer-Encoding", "Content-Length", "Trailer":
			default:
				if http1.IsToken(name) {
					w.trailers = append(w.trailers, name)
				}
			}
		}
	}
}

func (w *response) isTrailer(name string) bool {
	if strings.HasPrefix(name, http.TrailerPrefix) {
		return true
	}
	for _, declared := range w.trailers {
		if declared == name {
			return true
		}
	}
	return false
}

func hasTrailers(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// appendTrailers appends the fields behind the body, and the blank line.
func (w *response) appendTrailers(b []byte) []byte {
	for _, name := range w.trailers {
		b = appendField(b, name, w.header[name])
	}
	for name, values := range w.header {
		if rest, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && http1.IsToken(rest) {
			b = appendField(b, rest, values)
		}
	}
	return append(b, "\r\n"...)
}

func appendField(b []byte, name string, values []string) []byte {
	for _, v := range values {
		b = append(append(append(b, name...), ": "...), clean(v)...)
		b = append(b, "\r\n"...)
	}
	return b
}

// clean keeps a value from ending its line.
func clean(v string) string {
	if strings.IndexByte(v, '\n') >= 0 || strings.IndexByte(v, '\r') >= 0 {
		v = strings.NewReplacer("\n", " ", "\r", " ").Replace(v)
	}
	return strings.Trim(v, " \t")
}
