// Package sse writes and reads Server-Sent Events.
//
// It owns the text format (the WHATWG event stream) and its bounds. It does not
// own event ids, replay, timers or HTTP.
package sse

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// AppendEvent appends an event of the type message to dst. The id line is left
// out when id is empty or holds a line break or NUL, which the format cannot
// carry. data may span lines; each becomes a data line, and a receiver joins
// them by \n.
func AppendEvent(dst []byte, id string, data []byte) []byte {
	dst = AppendEventHead(dst, id)
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		dst = appendLines(dst, data)
	} else {
		dst = append(dst, data...)
	}
	return append(dst, EventEnd...)
}

// AppendEventHead appends what stands before the data of such an event, which AppendEvent need not copy then: data without line
// breaks, and EventEnd, follow.
func AppendEventHead(dst []byte, id string) []byte {
	dst = append(dst, "event: message\n"...)
	dst = appendID(dst, id)
	return append(dst, "data: "...)
}

// EventEnd ends an event.
const EventEnd = "\n\n"

// appendLines appends data with the field name after each line break.
func appendLines(dst, data []byte) []byte {
	start := 0
	for i, c := range data {
		if c != '\n' && c != '\r' {
			continue
		}
		if c == '\n' && i > 0 && data[i-1] == '\r' { // the second half of CRLF
			start = i + 1
			continue
		}
		dst = append(append(dst, data[start:i]...), "\ndata: "...)
		start = i + 1
	}
	return append(dst, data[start:]...)
}

// AppendPriming appends an event with an id and empty data, which gives a client
// something to resume from before the first message. Clients before 2025-11-25
// may crash on it (E-7).
func AppendPriming(dst []byte, id string) []byte {
	return append(appendID(dst, id), "data: \n\n"...)
}

// AppendComment appends a comment, which receivers ignore, as a block of its
// own. Line breaks in text start further comment lines.
func AppendComment(dst []byte, text string) []byte {
	for {
		n := strings.IndexAny(text, "\r\n")
		if n < 0 {
			return append(append(append(dst, ": "...), text...), '\n', '\n')
		}
		dst = append(append(append(dst, ": "...), text[:n]...), '\n')
		text = text[n+1:]
	}
}

// AppendRetry appends a reconnection time, in whole milliseconds, as a block of
// its own. Negative times count as zero.
func AppendRetry(dst []byte, d time.Duration) []byte {
	dst = strconv.AppendInt(append(dst, "retry: "...), max(d.Milliseconds(), 0), 10)
	return append(dst, '\n', '\n')
}

func appendID(dst []byte, id string) []byte {
	for i := range len(id) { // ids are short: a loop beats a search
		if c := id[i]; c == 0 || c == '\r' || c == '\n' {
			return dst
		}
	}
	if id == "" {
		return dst
	}
	return append(append(append(dst, "id: "...), id...), '\n')
}
