package rawjson

import "strings"

// An Edit sets or removes one member of an object.
type Edit struct {
	Name  string // without quotes and escapes
	Value []byte // raw JSON; nil (or empty) removes the member
}

// maxEdits is up to how many edits are looked through for each member. More are found by
// their names.
const maxEdits = 64

// Apply appends obj, with the edits made, to dst and returns the result. A
// member that exists gets its new value in its place or is cut out together
// with its comma; new members follow at the end in the order of the edits. Every
// other byte stays as it was, whitespace included (P-6). Of several edits of one
// name the last counts. An empty obj counts as {}; a value that is no object is
// appended unchanged. dst must not overlap obj or a Value.
func Apply(dst, obj []byte, edits ...Edit) []byte {
	c, ok := newCursor(obj)
	if !ok {
		if skipSpace(obj, 0) < len(obj) {
			return append(dst, obj...)
		}
		obj = []byte("{}")
		c, _ = newCursor(obj)
	}
	s := splice{dst: dst, obj: obj, end: c.i}
	if len(edits) > maxEdits {
		s.last = lastOf(edits)
	}
	for more := c.next(); more; {
		k := s.find(edits, c.name())
		s.end = c.valueEnd
		switch {
		case k < 0:
			s.kept = true
			more = c.next()
		case len(edits[k].Value) > 0:
			s.replace(&c, edits[k].Value)
			more = c.next()
		default:
			more = s.remove(&c)
		}
	}
	s.add(edits)
	return append(s.dst, obj[s.from:]...)
}

// lastOf has the place of the last edit of each name. It has copies of these, or all edits of all
// callers, be they few, would have to live on the heap.
func lastOf(edits []Edit) map[string]int {
	last := make(map[string]int, len(edits))
	for k := range edits {
		last[strings.Clone(edits[k].Name)] = k
	}
	return last
}

// find returns the index of the last edit of the member with this raw name, and notes that it met a
// member; -1: there is none.
func (s *splice) find(edits []Edit, raw []byte) int {
	if s.last != nil {
		name := string(unescaped(raw))
		k, ok := s.last[name]
		if !ok {
			return -1
		}
		if k < 0 { // an object may have a member twice
			return met - k
		}
		s.last[name] = met - k
		return k
	}
	for k := len(edits) - 1; k >= 0; k-- {
		if sameName(raw, edits[k].Name) {
			s.done |= 1 << k
			return k
		}
	}
	return -1
}

// met minus a place is none, and says that its edit met a member.
const met = -1

// splice is the state of one Apply: obj[:from] is dealt with, the bytes after
// it are to be copied as they are up to the next edit.
type splice struct {
	dst, obj []byte
	from     int
	end      int    // after the latest member, or after the opening brace
	kept     bool   // a member stands in dst or will be copied
	done     uint64 // edits that met their member, up to maxEdits

	last map[string]int // of more edits, the last of each name, met minus its place once it met a member; nil: they are few
}

func (s *splice) copyTo(i int) {
	if i > s.from {
		s.dst = append(s.dst, s.obj[s.from:i]...)
		s.from = i
	}
}

func (s *splice) replace(c *cursor, value []byte) {
	s.copyTo(c.valueStart)
	s.dst = append(s.dst, value...)
	s.from = c.valueEnd
	s.kept = true
}

// remove cuts out the current member, moves c on and reports whether there is a
// next member. Behind a member that stays, the comma before goes too; at the
// front, the comma behind.
func (s *splice) remove(c *cursor) bool {
	if s.kept {
		s.copyTo(c.comma)
		s.from = c.valueEnd
		return c.next()
	}
	s.copyTo(c.nameStart - 1)
	s.from = c.valueEnd
	more := c.next()
	if more {
		s.from = c.nameStart - 1
	}
	return more
}

// add writes the edits that met no member behind the last member.
func (s *splice) add(edits []Edit) {
	for k, e := range edits {
		if len(e.Value) == 0 || s.settled(edits, k) {
			continue
		}
		s.copyTo(s.end)
		if s.kept {
			s.dst = append(s.dst, ',')
		}
		s.kept = true
		s.dst = append(AppendQuote(s.dst, e.Name), ':')
		s.dst = append(s.dst, e.Value...)
	}
}

// settled reports whether edit k met its member, or is none for another one of its name.
func (s *splice) settled(edits []Edit, k int) bool {
	if s.last != nil {
		return s.last[edits[k].Name] != k
	}
	return s.done&(1<<k) != 0 || later(edits[k+1:], edits[k].Name)
}

func later(edits []Edit, name string) bool {
	for _, e := range edits {
		if e.Name == name {
			return true
		}
	}
	return false
}
