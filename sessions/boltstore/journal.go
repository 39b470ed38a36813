package boltstore

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/mcpbridge/bridge/sessions/store"
	bolt "go.etcd.io/bbolt"
)

// journal is a file of one size beside the store's, which is written from its beginning
// again and again: the disk need not note where it ends. What it holds are frames, each
// with the changes of one write. A frame names the generation of the journal, which the
// store's file names, too; others are of earlier rounds and count for nothing. One of a later round
// says that the file has gone back to what it was before. Behind it
// a quarter as much is for frames that only end sessions, when the file takes nothing of what is before them, and half as much is a
// reserve, which goes back to a full disk for what makes room there.
type journal struct {
	file       *os.File
	size       int64
	room       int64 // where frames that only end sessions are to end; size: as all others
	generation uint64
	number     uint32 // of the newest generation
	next       uint64 // the number of the next frame
	at         int64  // where it goes
	failed     bool   // until it begins anew: what the disk has of it is unknown
	written    bool   // it is not blank, on the disk neither
	buf        []byte

	before uint64        // how many frames this process wrote or read in earlier generations
	wrote  atomic.Uint64 // how many in all
	synced atomic.Uint64 // how many of these are on the disk for certain
	told   uint64        // how many of the generation are, as its frames say
}

// journalSize bounds what has to be read again after a crash, and what is in memory.
const journalSize = 8 << 20

var (
	journalBucket = []byte("journal")
	journalKey    = []byte("state")
	frameMagic    = []byte("MBj1")
	castagnoli    = crc32.MakeTable(crc32.Castagnoli)

	noHead  [frameHead]byte
	errFull = errors.New("the journal is full")
)

// A frame is: magic, checksum of all that follows, generation, number, length, changes. A
// change is the lengths of key and value, 0 to remove it, else one more, and both.
//
// Where frames are not on the disk at once, the first change may remove what there never is: a record
// of no session, whose id is how many frames of the generation were on the disk when this one was written.
// So a gap before these is damage, and one behind them what a crash of the machine has taken. Earlier
// builds read it as a change of nothing.
const (
	frameHead  = 4 + 4 + 8 + 8 + 4
	changeHead = 2 + 4

	syncedKey  = 2 + 8
	syncedSize = changeHead + syncedKey
	syncedKind = 'y'
)

// What the file says of its journal.
const (
	stateClosed  byte = iota // there is nothing in it
	stateStrict              // frames were on the disk one after the other
	stateRelaxed             // after a crash of the machine any may be missing of those that none says to be on the disk

	// stateWritten is added to one of these when something stood in the journal before the file said so:
	// one that is blank has lost what it had. Earlier builds left it blank until the first commit.
	stateWritten byte = 0x10
)

func (s *Store) state() byte {
	state := stateStrict
	switch {
	case s.journal.size == 0:
		return stateClosed
	case s.relaxed:
		state = stateRelaxed
	}
	if s.journal.written {
		state |= stateWritten
	}
	return state
}

// mark is what the file says of its journal: state, generation and size.
func mark(state byte, generation uint64, size int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{state}, generation), uint64(size)) //nolint:gosec // no file is so large
}

// A generation is the mark of those that are in order, a number that counts up, and a few bits by
// chance, which tell the journals of two files apart. Earlier builds made all of it by chance.
const (
	orderedMark   = 0x4d42
	orderedDigits = 16 // below the number
)

// generationOf returns one with a number.
func generationOf(number uint32) uint64 {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return orderedMark<<48 | uint64(number)<<orderedDigits | uint64(binary.BigEndian.Uint16(b[:]))
}

// numberOf returns the number of a generation, 0 of one that is in no order.
func numberOf(generation uint64) (number uint32, ordered bool) {
	if generation>>48 != orderedMark {
		return 0, false
	}
	return uint32(generation >> orderedDigits & 0xffffffff), true //nolint:gosec // masked
}

// openJournal brings what a process that crashed has left into the file.
func (s *Store) openJournal(path string, opt *Options) error {
	state := stateClosed
	size := cmp.Or(opt.journal, journalSize)
	if opt.Direct {
		size = 0
	}
	j := &journal{size: size}
	err := s.db.View(func(tx *bolt.Tx) error {
		m := tx.Bucket(journalBucket).Get(journalKey)
		if len(m) != len(mark(0, 0, 0)) {
			return nil
		}
		j.generation = binary.BigEndian.Uint64(m[1:])
		if m[0] != stateClosed {
			state, j.written, j.size = m[0]&^stateWritten, m[0]&stateWritten != 0, int64(binary.BigEndian.Uint64(m[9:])) //nolint:gosec // as mark made it
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.journal = j
	if err = j.open(path+".journal", state != stateClosed); err != nil {
		return err
	}
	if err = s.replay(state); err == nil {
		err = s.renewJournal(path+".journal", size, state != stateClosed)
	}
	if err != nil {
		return errors.Join(err, s.journal.file.Close())
	}
	return nil
}

// renewJournal empties the journal, which is in use or not, and begins one of this size. Where the
// file takes nothing at the moment, above all because the disk is full, all stays where it
// is until it does.
func (s *Store) renewJournal(path string, size int64, used bool) error {
	j := s.journal
	err := s.settleWithRoom(stateClosed, nil) // nothing of it is needed any more
	if err == nil {
		used = false
	}
	if err == nil {
		err = j.resize(path, size)
	}
	if err == nil && j.size > 0 {
		j.written = j.prime() == nil
		err = s.settle(s.state())
	}
	if err == nil || errors.Is(err, store.ErrCorrupt) {
		return err
	}
	j.failed = !used || j.wipe() != nil
	info, err := j.file.Stat()
	if err == nil && info.Size() < j.size { // of a store that was not used yet
		j.size = 0
		j.measure()
	}
	return err
}

// resize makes the journal one of another size, 0 where there is no room for it.
func (j *journal) resize(path string, size int64) error {
	const most = 3 // quarters more: for ends, and the reserve
	defer j.measure()
	info, err := j.file.Stat()
	if err != nil || info.Size() == size+most*(size/4) {
		j.size = size
		return err
	}
	for quarters := int64(most); quarters >= 0; quarters-- {
		if j.size = size; j.make(path, size+quarters*(size/4)) == nil {
			return nil
		}
	}
	j.size = 0 // above all, the disk is full: commits go into the file
	return j.file.Truncate(0)
}

// measure finds out how much of the file is for ends. It may be smaller, or an earlier build's.
func (j *journal) measure() {
	j.room = j.size
	if info, err := j.file.Stat(); err == nil {
		j.room = max(j.size, min(info.Size(), j.size+j.size/4))
	}
}

// wipe removes what may still stand behind the frames that were read, so that more can follow these.
func (j *journal) wipe() error {
	if j.at == 0 && j.written {
		if err := j.prime(); err != nil {
			return err
		}
	}
	_, err := j.file.WriteAt(make([]byte, j.room-j.at), j.at)
	return errors.Join(err, j.sync())
}

// prime writes a frame without changes at the beginning of a journal of which nothing is needed any
// more, and has it on the disk when it returns.
func (j *journal) prime() error {
	j.begin(j.generation)
	return j.write(nil, true, j.size)
}

// spend gives the reserve back to the disk, and reports whether there was one.
func (j *journal) spend() bool {
	info, err := j.file.Stat()
	return err == nil && info.Size() > j.room && j.file.Truncate(j.room) == nil
}

// open opens the file, or makes it unless it must be there.
func (j *journal) open(path string, must bool) error {
	info, err := os.Stat(path)
	switch {
	case must && err != nil:
		return fmt.Errorf("%w: its journal is missing: %w", store.ErrCorrupt, err)
	case must && info.Size() < j.size:
		return fmt.Errorf("%w: its journal has %d bytes of %d", store.ErrCorrupt, info.Size(), j.size)
	}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		j.measure()
	}
	return err
}

// make fills the file, so that the disk has room for all of it.
func (j *journal) make(path string, size int64) error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := j.file.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	_ = dir.Sync() // not every system can
	return dir.Close()
}

// begin forgets what is in the journal.
func (j *journal) begin(generation uint64) {
	j.generation, j.next, j.at, j.failed = generation, 0, 0, false
	j.before, j.told = j.wrote.Load(), 0
	number, _ := numberOf(generation)
	j.number = max(j.number, number)
}

// write adds a frame that ends where it is to, or before. After an error nothing was kept.
func (j *journal) write(changes []done, sync bool, limit int64) error {
	if j.failed {
		return errFull
	}
	j.buf = append(j.buf[:0], noHead[:]...)
	onDisk := j.onDisk()
	if !sync && onDisk > j.told {
		j.buf = appendSynced(j.buf, onDisk)
	}
	for i := range changes {
		at, raw := changes[i].at, changes[i].raw
		length := uint32(0)
		if raw != nil {
			length = uint32(len(raw)) + 1 //nolint:gosec // MaxValue bounds it
		}
		j.buf = binary.BigEndian.AppendUint16(j.buf, uint16(keySize(at))) //nolint:gosec // MaxID bounds it
		j.buf = binary.BigEndian.AppendUint32(j.buf, length)
		j.buf = append(appendKey(j.buf, at), raw...)
		if j.at+int64(len(j.buf)) > limit {
			return errFull
		}
	}
	if j.at+int64(len(j.buf)) > limit {
		return errFull
	}
	binary.BigEndian.PutUint64(j.buf[8:], j.generation)
	binary.BigEndian.PutUint64(j.buf[16:], j.next)
	binary.BigEndian.PutUint32(j.buf[24:], uint32(len(j.buf)-frameHead)) //nolint:gosec // the journal's size bounds it
	copy(j.buf, frameMagic)
	binary.BigEndian.PutUint32(j.buf[4:], crc32.Checksum(j.buf[8:], castagnoli))
	_, err := j.file.WriteAt(j.buf, j.at)
	if err == nil && sync {
		err = syncData(j.file)
	}
	if err != nil {
		j.failed = true
		return err
	}
	j.at += int64(len(j.buf))
	j.next++
	j.wrote.Add(1)
	if !sync {
		j.told = onDisk
	}
	return nil
}

// sync has what was written on the disk when it returns. Not only the writer calls it.
func (j *journal) sync() error {
	wrote := j.wrote.Load()
	err := syncData(j.file)
	if err == nil {
		j.synced.Store(wrote)
	}
	return err
}

// onDisk is how many frames of the generation are there for certain.
func (j *journal) onDisk() uint64 {
	if synced := j.synced.Load(); synced > j.before {
		return synced - j.before
	}
	return 0
}

// untold reports whether all frames are on the disk, and none says so of some that others follow.
func (j *journal) untold() bool { return !j.failed && j.onDisk() == j.next && j.next > j.told+1 }

func appendSynced(buf []byte, frames uint64) []byte {
	buf = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(buf, syncedKey), 0)
	return binary.BigEndian.AppendUint64(append(buf, 0, syncedKind), frames)
}

// syncedIn returns how many frames a frame's changes say to be on the disk.
func syncedIn(payload []byte) uint64 {
	if len(payload) < syncedSize {
		return 0
	}
	frames := binary.BigEndian.Uint64(payload[syncedSize-8:])
	if !bytes.Equal(payload[:syncedSize], appendSynced(nil, frames)) {
		return 0
	}
	return frames
}

// sync brings what was acknowledged to the disk.
func (s *Store) sync() error {
	if s.db.NoSync {
		return s.db.Sync()
	}
	return s.journal.sync()
}

// closeJournal leaves all that was acknowledged on the disk, in the file unless that fails.
func (s *Store) closeJournal() error {
	defer s.below.end()
	err := s.settleWithRoom(stateClosed, nil)
	if err != nil || s.db.NoSync {
		err = errors.Join(err, s.sync())
	}
	return errors.Join(err, s.journal.file.Close())
}
