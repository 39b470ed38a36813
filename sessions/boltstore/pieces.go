package boltstore

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// The engine puts a value that is longer than a page, and up to three beside it, on pages in a row. Of a file whose free pages
// are scattered there is none in a row for a long one: whoever mixes short calls with long ones, and ends all but a few of
// them again and again, would have it become many times as large as what it holds. So a long value lies in the file in pieces, in a
// bucket of their own, and its record says how long it is and how many they are.

const (
	pieceSize  = 7 << 10
	piecesHead = valueHead + 4 + 4 // version and expiry, then the value's length and the number of pieces, whose size may change

	// inPieces is added to the version of a record whose value is: none gets that far.
	inPieces = uint64(1) << 63
)

var piecesName = []byte("pieces")

// isInPieces returns how long a value is that lies elsewhere, and in how many pieces.
func isInPieces(raw []byte) (length, pieces uint32, ok bool) {
	if len(raw) != piecesHead || binary.BigEndian.Uint64(raw)&inPieces == 0 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(raw[valueHead:]), binary.BigEndian.Uint32(raw[valueHead+4:]), true
}

// pieceKey is the key of a record, with its length so that none begins with another one, and a number.
func pieceKey(key []byte, number uint32) []byte {
	out := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(key)+4), uint16(len(key))) //nolint:gosec // MaxID bounds it
	return binary.BigEndian.AppendUint32(append(out, key...), number)
}

// write puts what the journal has into the file.
func write(b *bolt.Bucket, key, raw []byte) error {
	if err := dropPieces(b, key); err != nil {
		return err
	}
	if len(raw) <= pieceSize {
		return b.Put(key, raw)
	}
	pieces, err := b.Tx().CreateBucketIfNotExists(piecesName)
	if err != nil {
		return err
	}
	value, number := raw[valueHead:], uint32(0)
	for piece := range slices.Chunk(value, pieceSize) {
		if err := pieces.Put(pieceKey(key, number), piece); err != nil {
			return err
		}
		number++
	}
	head := binary.BigEndian.AppendUint64(make([]byte, 0, piecesHead), binary.BigEndian.Uint64(raw)|inPieces)
	head = binary.BigEndian.AppendUint32(append(head, raw[8:valueHead]...), uint32(len(value))) //nolint:gosec // MaxValue bounds it
	return b.Put(key, binary.BigEndian.AppendUint32(head, number))
}

// remove takes a record out of the file.
func remove(b *bolt.Bucket, key []byte) error {
	if err := dropPieces(b, key); err != nil {
		return err
	}
	return b.Delete(key)
}

// dropPieces removes the pieces of what stands under a key.
func dropPieces(b *bolt.Bucket, key []byte) error {
	_, n, ok := isInPieces(b.Get(key))
	pieces := b.Tx().Bucket(piecesName)
	if !ok || pieces == nil {
		return nil
	}
	for number := range n {
		if err := pieces.Delete(pieceKey(key, number)); err != nil {
			return err
		}
	}
	return nil
}

// whole returns what stands under a key as the journal had it, in new memory where it lies in pieces. It panics where some
// are missing, as the engine does when the file is damaged.
func whole(b *bolt.Bucket, key, raw []byte) []byte {
	length, n, ok := isInPieces(raw)
	if !ok {
		return raw
	}
	pieces := b.Tx().Bucket(piecesName)
	out := binary.BigEndian.AppendUint64(make([]byte, 0, valueHead+min(int(length), store.MaxValue)), binary.BigEndian.Uint64(raw)&^inPieces)
	out = append(out, raw[8:valueHead]...)
	if pieces != nil {
		c := pieces.Cursor()
		at, piece := c.Seek(pieceKey(key, 0))
		for number := uint32(0); number < n && bytes.Equal(at, pieceKey(key, number)); number++ {
			out = append(out, piece...)
			at, piece = c.Next()
		}
	}
	if len(out) != valueHead+int(length) {
		panic("pieces of a value are missing")
	}
	return out
}

// wholeRecord is record for what stands in the file.
func wholeRecord(b *bolt.Bucket, at store.Address, raw []byte, now time.Time) (r store.Record, ok bool) {
	if _, _, lies := isInPieces(raw); !lies {
		return record(at, raw, now)
	}
	version, ttl, value, ok := decode(raw, now)
	if ok {
		value = whole(b, keyOf(at), raw)[valueHead:]
	}
	return store.Record{Address: at, Version: version, TTL: ttl, Value: value}, ok
}
