package downstream

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// Seat is the number of a replica of the bridge among those that share a store, for as
// long as its process lives. It is drawn by lot, so it tells clients nothing, and the ids
// that clients get of questions and events hold it, so that any replica can tell whose
// they are. 0 stands for a bridge that shares nothing.
type Seat uint32

// NewSeat draws a seat that is free with a probability of all but one in a billion.
func NewSeat() Seat {
	var b [4]byte
	_, _ = rand.Read(b[:])                                        // never fails
	return Seat(binary.BigEndian.Uint32(b[:])|1<<30) &^ (1 << 31) // positive even as half of an int64, and never 0
}

// String returns the seat as eight hexadecimal digits.
func (s Seat) String() string { return fmt.Sprintf("%08x", uint32(s)) }

// QuestionID returns the id of a new server request, a JSON token: unguessable, so that
// no other session can answer it, and never used before (P-9).
func (s Seat) QuestionID() jsonrpc.ID {
	if s == 0 {
		return jsonrpc.ID(`"b-` + rand.Text() + `"`)
	}
	return jsonrpc.ID(`"b-` + rand.Text() + "-" + s.String() + `"`)
}

// SeatOf returns the seat that a server request's id names, 0 when it names none.
func SeatOf(id jsonrpc.ID) Seat {
	text := strings.Trim(string(id), `"`)
	seat, _ := ParseSeat(text[strings.LastIndexByte(text, '-')+1:])
	return seat
}

// ParseSeat reads what String has written.
func ParseSeat(digits string) (seat Seat, ok bool) {
	number, err := strconv.ParseUint(digits, 16, 31)
	if err != nil || len(digits) != 8 {
		return 0, false
	}
	return Seat(number), true
}
