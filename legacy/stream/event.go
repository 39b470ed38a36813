package stream

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sse"
)

// EventID names an event to a client: the number of its stream, and its own there (E-21).
type EventID struct{ Stream, Seq uint64 }

// ParseEventID reads `<stream>-<seq>`.
func ParseEventID(s string) (id EventID, ok bool) {
	stream, seq, found := strings.Cut(s, "-")
	var err1, err2 error
	id.Stream, err1 = strconv.ParseUint(stream, 10, 64)
	id.Seq, err2 = strconv.ParseUint(seq, 10, 64)
	return id, found && err1 == nil && err2 == nil
}

// OfCall reports whether the event is one of a call's stream.
func (id EventID) OfCall() bool { return !isStandalone(id.Stream) }

// appendTo spells the id.
func (id EventID) appendTo(dst []byte) []byte {
	dst = strconv.AppendUint(dst, id.Stream, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, id.Seq, 10)
}

// appendEvent frames an event of a stream, one without data as a priming event. What takes several writes is not copied.
func appendEvent(out *message.Frames, ids bool, id EventID, data []byte) {
	buf := out.Buffer()
	var space [48]byte
	spelled := space[:0]
	if ids {
		spelled = id.appendTo(spelled)
	}
	if data == nil {
		*buf = sse.AppendPriming(*buf, string(spelled))
		return
	}
	if len(data) < web.WritePart || bytes.ContainsAny(data, "\r\n") {
		*buf = sse.AppendEvent(*buf, string(spelled), data)
		return
	}
	*buf = sse.AppendEventHead(*buf, string(spelled))
	out.Share(data)
	*buf = append(*buf, sse.EventEnd...)
}
