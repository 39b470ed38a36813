package legacy

import (
	"strconv"

	"github.com/mcpbridge/bridge/sse"
)

// appendEvent frames an event of a stream, one without data as a priming event.
func appendEvent(buf *[]byte, ids bool, stream, seq uint64, data []byte) {
	var space [48]byte
	id := space[:0]
	if ids {
		id = appendEventID(id, stream, seq)
	}
	if data == nil {
		*buf = sse.AppendPriming(*buf, string(id))
		return
	}
	*buf = sse.AppendEvent(*buf, string(id), data)
}

// appendEventID spells the id of an event, `<stream>-<seq>` (E-21).
func appendEventID(dst []byte, stream, seq uint64) []byte {
	dst = strconv.AppendUint(dst, stream, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, seq, 10)
}
