package rawjson

import "math"

// Validate reports whether b is exactly one JSON value, with or without
// whitespace around it: the grammar of RFC 8259, UTF-8 throughout, at most
// MaxDepth levels, and no member name twice in one object at any depth, compared
// after unescaping. Escapes of lone surrogates are allowed (P-6). The error is a
// *SyntaxError.
func Validate(b []byte) error {
	var large largeNames
	s := scanner{b: b, large: &large}
	return s.text()
}

// A Field asks Survey for one member of the outermost object, or of an object
// that is a member of that.
type Field struct {
	Name  string // without quotes and escapes
	In    string // the member that is the object; empty: the outermost object
	Value []byte // raw; nil when there is no such member

	start, end int // of Value while scanning: offsets let fields stay on the stack
}

// Survey validates b like Validate and, in the same pass, sets the Value of each
// field that b has. Fields with In come behind those without. Values alias b.
// When b is no object no field is set. After an error the fields that were read
// before the fault are set.
func Survey(b []byte, fields []Field) error {
	for k := range fields {
		fields[k].start, fields[k].end = 0, 0
	}
	var large largeNames
	s := scanner{b: b, fields: fields, large: &large}
	for k := range fields {
		if fields[k].In != "" {
			s.fields, s.inner = fields[:k], fields[k:]
			break
		}
	}
	err := s.text()
	for k := range fields {
		fields[k].Value = nil
		if f := &fields[k]; f.end > 0 {
			f.Value = b[f.start:f.end:f.end]
		}
	}
	return err
}

// Balanced is Validate without the rules on member names and on UTF-8: it
// reports whether b is one value of the right grammar and depth. It serves to
// take a batch apart whose elements are judged one by one.
func Balanced(b []byte) error {
	s := scanner{b: b, lax: true, large: new(largeNames)}
	return s.text()
}

// scanner is one validating pass over a text. Its methods take the index to
// start at and return the index after what they accepted, or -1 after a fault.
type scanner struct {
	b      []byte
	fields []Field
	inner  []Field // those with In
	within [2]int  // name of the outermost member that is being scanned, if there are any
	lax    bool    // names and UTF-8 are not looked at
	escape bool    // the latest string held an escape, or may have

	offset int // of the fault
	reason fault

	top   int // entries of names in use by the objects that are open
	names [32]entry
	large *largeNames
}

func (s *scanner) text() error {
	if uint64(len(s.b)) > math.MaxUint32 {
		return &SyntaxError{Reason: reasons[textTooLong]}
	}
	i := s.value(skipSpace(s.b, 0), 0)
	s.large.release()
	if i >= 0 {
		if i = skipSpace(s.b, i); i < len(s.b) {
			i = s.fail(i, trailing)
		}
	}
	if i < 0 {
		return &SyntaxError{Offset: s.offset, Reason: reasons[s.reason]}
	}
	return nil
}

func (s *scanner) fail(i int, reason fault) int {
	if i >= len(s.b) && reason != duplicate {
		i, reason = len(s.b), endOfText
	}
	s.offset, s.reason = i, reason
	return -1
}

func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return s.fail(i, endOfText)
	}
	switch s.b[i] {
	case '"':
		return s.str(i)
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	}
	return s.number(i)
}

func (s *scanner) literal(i int, want string) int {
	if len(s.b)-i >= len(want) && string(s.b[i:i+len(want)]) == want {
		return i + len(want)
	}
	return s.fail(i, badLiteral)
}

func (s *scanner) object(i, depth int) int {
	b, at := s.b, i
	if depth >= MaxDepth {
		return s.fail(i, tooDeep)
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	set := nameSet{base: s.top}
	for {
		if i >= len(b) || b[i] != '"' {
			return s.fail(i, noName)
		}
		name := i + 1
		s.escape = false
		if i = s.str(i); i < 0 {
			return -1
		}
		end, escaped := i-1, s.escape
		if !s.lax && !s.add(&set, name, end) {
			return s.fail(name-1, duplicate)
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return s.fail(i, noColon)
		}
		value := skipSpace(b, i+1)
		if depth == 0 && s.inner != nil {
			s.within = [2]int{name, end} // no slice, or fields would have to live on the heap
		}
		if i = s.value(value, depth+1); i < 0 {
			return -1
		}
		switch depth {
		case 0:
			capture(s.fields, nil, b[name:end], escaped, value, i)
		case 1:
			capture(s.inner, b[s.within[0]:s.within[1]], b[name:end], escaped, value, i)
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' {
			break
		}
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '}' {
		return s.fail(i, noObjectEnd)
	}
	s.top = set.base
	if set.wide && s.large.crowd.repeats(b, set.first) {
		return s.fail(at, duplicate)
	}
	return i + 1
}

// capture notes the member with this raw name, which may hold escapes only if
// escaped says so, and the value b[start:end].
func capture(fields []Field, within, name []byte, escaped bool, start, end int) {
	for k := range fields {
		f := &fields[k]
		same := string(name) == f.Name
		if escaped {
			same = sameName(name, f.Name)
		}
		if same && (f.In == "" || sameName(within, f.In)) {
			f.start, f.end = start, end
			return
		}
	}
}

func (s *scanner) array(i, depth int) int {
	b := s.b
	if depth >= MaxDepth {
		return s.fail(i, tooDeep)
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' {
			break
		}
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != ']' {
		return s.fail(i, noArrayEnd)
	}
	return i + 1
}

func (s *scanner) number(i int) int {
	if end := numberEnd(s.b, i); end > i {
		return end
	}
	return s.fail(i, noValue)
}
