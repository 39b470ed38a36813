package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/mcpbridge/bridge/sessions/store"
)

// replay makes recent what the journal has.
func (s *Store) replay(state byte) error {
	j := s.journal
	text := make([]byte, j.size)
	if _, err := io.ReadFull(j.file, text); err != nil {
		return err
	}
	if j.written && blank(text) {
		return fmt.Errorf("%w: its journal is blank", store.ErrCorrupt)
	}
	var changes []done
	for {
		payload, ok := j.frame(text[j.at:])
		if !ok {
			break
		}
		if changes, ok = read(changes, payload); !ok {
			return fmt.Errorf("%w: its journal has a frame that is none", store.ErrCorrupt)
		}
		j.at += frameHead + int64(len(payload))
		j.next++
	}
	// The last write may have been torn by the crash, and was acknowledged to nobody. But
	// then nothing can follow. That what follows has been zeroed cannot be told from it.
	if state == stateStrict && j.follows(text[j.at:]) {
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

// frame returns what is in the next frame; ok is false when there is none.
func (j *journal) frame(text []byte) (payload []byte, ok bool) {
	if number, ok := j.whole(text); !ok || number != j.next {
		return nil, false
	}
	return text[frameHead : frameHead+binary.BigEndian.Uint32(text[24:])], true
}

// whole reports whether text begins with a frame of this generation, and its number.
func (j *journal) whole(text []byte) (number uint64, ok bool) {
	if len(text) < frameHead || !bytes.HasPrefix(text, frameMagic) || binary.BigEndian.Uint64(text[8:]) != j.generation {
		return 0, false
	}
	end := frameHead + int64(binary.BigEndian.Uint32(text[24:]))
	if end > int64(len(text)) || crc32.Checksum(text[8:end], castagnoli) != binary.BigEndian.Uint32(text[4:]) {
		return 0, false
	}
	return binary.BigEndian.Uint64(text[16:]), true
}

// follows reports whether there is a later frame somewhere.
func (j *journal) follows(text []byte) bool {
	for {
		at := bytes.Index(text, frameMagic)
		if at < 0 {
			return false
		}
		if number, ok := j.whole(text[at:]); ok && number > j.next {
			return true
		}
		text = text[at+len(frameMagic):]
	}
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
