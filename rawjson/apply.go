package rawjson

// An Edit sets or removes one member of an object.
type Edit struct {
	Name  string // without quotes and escapes
	Value []byte // raw JSON; nil (or empty) removes the member
}

// maxEdits is how many edits one pass keeps account of.
const maxEdits = 64

// Apply appends obj, with the edits made, to dst and returns the result. A
// member that exists gets its new value in its place or is cut out together
// with its comma; new members follow at the end in the order of the edits. Every
// other byte stays as it was, whitespace included (P-6). Of several edits of one
// name the last counts. An empty obj counts as {}; a value that is no object is
// appended unchanged. dst must not overlap obj or a Value.
func Apply(dst, obj []byte, edits ...Edit) []byte {
	if len(edits) > maxEdits {
		return Apply(dst, Apply(nil, obj, edits[:maxEdits]...), edits[maxEdits:]...)
	}
	c, ok := newCursor(obj)
	if !ok {
		if skipSpace(obj, 0) < len(obj) {
			return append(dst, obj...)
		}
		obj = []byte("{}")
		c, _ = newCursor(obj)
	}
	s := splice{dst: dst, obj: obj, end: c.i}
	for more := c.next(); more; {
		k := find(edits, c.name())
		if k >= 0 {
			s.done |= 1 << k
		}
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

// find returns the index of the last edit of the member with this raw name.
func find(edits []Edit, raw []byte) int {
	for k := len(edits) - 1; k >= 0; k-- {
		if sameName(raw, edits[k].Name) {
			return k
		}
	}
	return -1
}

// splice is the state of one Apply: obj[:from] is dealt with, the bytes after
// it are to be copied as they are up to the next edit.
type splice struct {
	dst, obj []byte
	from     int
	end      int    // after the latest member, or after the opening brace
	kept     bool   // a member stands in dst or will be copied
	done     uint64 // edits that met their member
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
		if len(e.Value) == 0 || s.done&(1<<k) != 0 || later(edits[k+1:], e.Name) {
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

func later(edits []Edit, name string) bool {
	for _, e := range edits {
		if e.Name == name {
			return true
		}
	}
	return false
}
