package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/mcpbridge/bridge/sessions/store"
)

// replay makes recent what the journal has.
func (s *Store) replay(state byte) error {
	j := s.journal
	text, err := io.ReadAll(io.NewSectionReader(j.file, 0, j.room))
	if err != nil {
		return err
	}
	// Where the page is damaged that tells of its last write, the engine goes back to the one before.
	number, ordered := numberOf(j.generation)
	if j.number = max(number, newestIn(text)); ordered && j.number > number {
		return fmt.Errorf("%w: it is older than its journal", store.ErrCorrupt)
	}
	if state == stateClosed {
		return nil // nothing of it is needed
	}
	if j.written && blank(text) {
		return fmt.Errorf("%w: its journal is blank", store.ErrCorrupt)
	}
	var changes []done
	for {
		f, ok := frameAt(text[j.at:])
		if !ok || f.generation != j.generation || f.number != j.next {
			break
		}
		if changes, ok = read(changes, f.payload); !ok {
			return fmt.Errorf("%w: its journal has a frame that is none", store.ErrCorrupt)
		}
		j.at += frameHead + int64(len(f.payload))
		j.next++
	}
	j.wrote.Store(j.next)
	// The last write may have been torn by the crash, and was acknowledged to nobody. But
	// then nothing can follow. That what follows has been zeroed cannot be told from it.
	if j.misses(state, text[j.at:]) {
		return fmt.Errorf("%w: its journal is damaged at byte %d", store.ErrCorrupt, j.at)
	}
	b := &batch{below: &s.below, recent: s.recent}
	return s.apply(b, []*request{{apply: func(b *batch) error {
		for _, c := range changes {
			b.put(c.at, b.get(c.at), c.raw)
		}
		return nil
	}}})
}

// blank reports whether there is nothing but zeros.
func blank(text []byte) bool { return len(bytes.TrimLeft(text, "\x00")) == 0 }

// frame is what one says of itself.
type frame struct {
	generation, number uint64
	payload            []byte
}

// frameAt returns the frame that text begins with; ok is false when there is none, or not all of it.
func frameAt(text []byte) (f frame, ok bool) {
	if len(text) < frameHead || !bytes.HasPrefix(text, frameMagic) {
		return frame{}, false
	}
	end := frameHead + int64(binary.BigEndian.Uint32(text[24:]))
	if end > int64(len(text)) || crc32.Checksum(text[8:end], castagnoli) != binary.BigEndian.Uint32(text[4:]) {
		return frame{}, false
	}
	return frame{binary.BigEndian.Uint64(text[8:]), binary.BigEndian.Uint64(text[16:]), text[frameHead:end]}, true
}

// framesIn returns the frames that stand anywhere.
func framesIn(text []byte) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		for {
			at := bytes.Index(text, frameMagic)
			if at < 0 {
				return
			}
			text = text[at:]
			size := len(frameMagic)
			if f, ok := frameAt(text); ok {
				if size = frameHead + len(f.payload); !yield(f) {
					return
				}
			}
			text = text[size:]
		}
	}
}

// misses reports whether the next frame of this generation was on the disk, by what follows it: where all
// are there at once that is any frame, else one that says so.
func (j *journal) misses(state byte, text []byte) bool {
	for f := range framesIn(text) {
		if f.generation == j.generation && (state == stateStrict && f.number > j.next || syncedIn(f.payload) > j.next) {
			return true
		}
	}
	return false
}

// newestIn returns the number of the newest generation that a frame names.
func newestIn(text []byte) (newest uint32) {
	for f := range framesIn(text) {
		number, _ := numberOf(f.generation)
		newest = max(newest, number)
	}
	return newest
}

// read adds the changes of a frame.
func read(changes []done, payload []byte) (_ []done, ok bool) {
	for len(payload) > 0 {
		if len(payload) < changeHead {
			return nil, false
		}
		key := int(binary.BigEndian.Uint16(payload))
		length := int64(binary.BigEndian.Uint32(payload[2:]))
		payload = payload[changeHead:]
		if key < 3 || int64(len(payload)) < int64(key)+max(length-1, 0) || 2+int(payload[0]) > key {
			return nil, false
		}
		c := done{at: addressOf(payload[:key])}
		payload = payload[key:]
		if length > 0 {
			c.raw, payload = bytes.Clone(payload[:length-1]), payload[length-1:]
			if c.raw == nil {
				c.raw = []byte{}
			}
		}
		changes = append(changes, c)
	}
	return changes, true
}
