package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Sealed keeps the values of another store secret and whole: each is encrypted under
// the first of several keys and bound to its address, so that whoever can write to
// the engine can neither read nor swap nor make records. What is left to them is to
// remove records, and to bring back an older value of the same one.
//
// A value begins with a byte for its format, which a newer version of the bridge may
// raise, and the mark of its key. Each session has a key of its own, derived from the
// configured one, so that no key seals too many values for random nonces.
type Sealed struct {
	Store
	keys  []sealingKey
	rooms sync.Pool // of *room, for values on their way
}

// room is where the changes of a commit are sealed.
type room struct {
	text    []byte
	bound   []byte
	changes []Change
}

type sealingKey struct {
	key  Key
	mark [markSize]byte // of the key, without telling anything of it
	// ciphers of the sessions that were used last: to make one costs more than to seal.
	ciphers *lru.Cache[string, cipher.AEAD]
}

// ciphersKept bounds how many ciphers of sessions are kept, of about a kilobyte each.
const ciphersKept = 1024

// mostRoom bounds what stays in memory of the room that large values took.
const mostRoom = 64 << 10

const (
	sealFormat = 1
	markSize   = 4
	headSize   = 1 + markSize
)

// NewSealed puts a seal around a store. The first key seals; there must be one.
func NewSealed(inner Store, keys []Key) (*Sealed, error) {
	if len(keys) == 0 {
		return nil, errors.New("a sealed store needs a key")
	}
	s := &Sealed{Store: inner, keys: make([]sealingKey, len(keys))}
	for i, key := range keys {
		mark, err := hkdf.Expand(sha256.New, key[:], "mcp-bridge store: mark", markSize)
		if err != nil {
			return nil, err
		}
		ciphers, err := lru.New[string, cipher.AEAD](ciphersKept)
		if err != nil {
			return nil, err
		}
		s.keys[i] = sealingKey{key, [markSize]byte(mark), ciphers}
	}
	return s, nil
}

// Commit implements Store.
func (s *Sealed) Commit(ctx context.Context, session string, changes ...Change) error {
	if err := Check(session, changes); err != nil {
		return err
	}
	aead, err := s.keys[0].aead(session)
	if err != nil {
		return err
	}
	r, _ := s.rooms.Get().(*room)
	if r == nil {
		r = new(room)
	}
	r.text, r.changes = r.text[:0], append(r.changes[:0], changes...)
	for i := range r.changes {
		if c := &r.changes[i]; !c.Delete {
			begin := len(r.text)
			s.seal(r, aead, Address{session, c.Kind, c.ID}, c.Value)
			c.Value = r.text[begin:len(r.text):len(r.text)]
		}
	}
	err = s.Store.Commit(ctx, session, r.changes...)
	if err == nil && cap(r.text) <= mostRoom { // else the engine may still be about to send it
		clear(r.changes)
		s.rooms.Put(r)
	}
	return err
}

// Get implements Store.
func (s *Sealed) Get(ctx context.Context, at Address) (Record, error) {
	record, err := s.Store.Get(ctx, at)
	if err == nil {
		s.open(&record)
	}
	return record, err
}

// Load implements Store.
func (s *Sealed) Load(ctx context.Context, session string) ([]Record, error) {
	list, err := s.Store.Load(ctx, session)
	for i := range list {
		s.open(&list[i])
	}
	return list, err
}

// seal adds a sealed value to a room's text.
func (s *Sealed) seal(r *room, aead cipher.AEAD, at Address, value []byte) {
	begin := len(r.text)
	r.text = slices.Grow(r.text, headSize+len(value)+aead.Overhead())
	r.text = append(append(r.text, sealFormat), s.keys[0].mark[:]...)
	r.bound = at.bound(r.bound[:0], r.text[begin:])
	r.text = aead.Seal(r.text, nil, value, r.bound)
}

// bound adds what a value is bound to: its address, and the head before it.
func (a Address) bound(out, head []byte) []byte {
	out = append(out, head...)
	out = append(strconv.AppendInt(append(out, byte(a.Kind)), int64(len(a.Session)), 10), ':')
	return append(append(out, a.Session...), a.ID...)
}

// open replaces a record's sealed value by the one that was sealed, or says why it can't.
func (s *Sealed) open(r *Record) {
	sealed := r.Value
	r.Value = nil
	if len(sealed) > 0 && sealed[0] > sealFormat {
		r.Err = ErrNewer
		return
	}
	r.Err = ErrForeign
	if len(sealed) < headSize || sealed[0] != sealFormat {
		return
	}
	head, text := sealed[:headSize], sealed[headSize:]
	for i := range s.keys {
		if !bytes.Equal(s.keys[i].mark[:], head[1:]) {
			continue
		}
		aead, err := s.keys[i].aead(r.Session)
		if err != nil {
			r.Err = err
			return
		}
		if value, err := aead.Open(nil, nil, text, r.bound(nil, head)); err == nil {
			r.Value, r.Err, r.Older = value, nil, i > 0
			return
		}
	}
}

// aead returns the cipher of one session.
func (k *sealingKey) aead(session string) (cipher.AEAD, error) {
	if aead, ok := k.ciphers.Get(session); ok {
		return aead, nil
	}
	key, err := hkdf.Expand(sha256.New, k.key[:], "mcp-bridge store: session "+session, KeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err == nil {
		k.ciphers.Add(session, aead)
	}
	return aead, err
}
