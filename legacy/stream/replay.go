package stream

import "github.com/mcpbridge/bridge/downstream"

// Number is that of a stream, and says whose it is: its upper half is the replica of the
// replica that began the stream, 0 for a bridge that keeps nothing. The first bits of the
// lower half tell the times apart that the session was brought back there; the others count.
type Number uint64

const (
	seatShift   = 32
	countBits   = 20
	maxOpenings = 1<<(seatShift-countBits) - 1
)

// First returns the number of a session's standalone stream where a replica has opened
// sessions, or brought some back, this many times. Those of calls follow. So no event id of
// another process, or of another time, names an event of this one.
func First(replica downstream.ReplicaID, opening uint32) Number {
	return Number(replica)<<seatShift | Number(opening&maxOpenings)<<countBits
}

// Replica returns that of the replica that began the stream.
func (n Number) Replica() downstream.ReplicaID { return downstream.ReplicaID(n >> seatShift) }

// First returns the number of the standalone stream beside a stream.
func (n Number) First() Number { return n &^ (1<<countBits - 1) }

// isStandalone reports whether a number is that of the stream which GET opens without
// Last-Event-ID.
func isStandalone(stream uint64) bool { return stream&(1<<countBits-1) == 0 }
