package message

// Frames are events on their way to a client, as it reads them. Long texts stand between them uncopied: of
// a client that is slow, and one that comes back again and again, each copy would be as large as the result. Nobody changes
// the text of an event. The zero Frames are none.
type Frames struct {
	buf  *[]byte
	long []long
}

// long is a text that stands before so many bytes of the buffer.
type long struct {
	at   int
	text []byte
}

// None reports whether there is nothing.
func (f *Frames) None() bool { return f.buf == nil }

// Buffer is what is appended to.
func (f *Frames) Buffer() *[]byte {
	if f.buf == nil {
		f.buf = Buffer()
	}
	return f.buf
}

// Share has a text follow what is in the buffer by now.
func (f *Frames) Share(text []byte) { f.long = append(f.long, long{len(*f.Buffer()), text}) }

// Len returns how many bytes there are.
func (f *Frames) Len() (n int) {
	if f.buf != nil {
		n = len(*f.buf)
	}
	for i := range f.long {
		n += len(f.long[i].text)
	}
	return n
}

// Pieces appends all that is to be written, from a byte of the buffer on that stands before all long texts. It is of use until Release.
func (f *Frames) Pieces(dst [][]byte, from int) [][]byte {
	if f.buf == nil {
		return dst
	}
	for _, l := range f.long {
		dst = append(dst, (*f.buf)[from:l.at], l.text)
		from = l.at
	}
	return append(dst, (*f.buf)[from:])
}

// Release lets go of all.
func (f *Frames) Release() {
	Release(&f.buf)
	f.long = nil
}
