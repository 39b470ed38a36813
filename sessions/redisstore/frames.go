package redisstore

// frame is a message that has others in it.
type frame struct {
	kind    byte
	left    int // values; -1: until a "."
	count   int // of them all; unknown where left is -1
	index   int
	pushed  int  // pushes among its values, while those are counted
	filling bool // what follows instead of them
}

// stream begins what has no length.
func (f *framing) stream() error {
	switch f.kind {
	case '$':
		f.chunked, f.written = true, 0
		return nil
	case '*', '~', '%':
		return f.push(frame{kind: f.kind, left: -1})
	}
	return garbled("a message has no length")
}

func (f *framing) streamEnded(size int) error {
	if size != 0 || f.depth == 0 || f.frames[f.depth-1].left != -1 || f.frames[f.depth-1].pushed > 0 {
		return garbled("something ends that did not begin")
	}
	f.depth--
	last := f.frames[f.depth]
	if f.depth == 0 && last.kind != '|' {
		return f.whole(last.kind, last.index)
	}
	return f.ended(last.kind)
}

// open goes on with the values of an array or the like.
func (f *framing) open(n int64, each int) error {
	if n == -1 && f.kind == '*' {
		return f.ended('_')
	}
	if n < 0 || n > int64((mostItems-f.items)/each) {
		return garbled("the number of values cannot be")
	}
	if n == 0 {
		return f.ended(f.kind)
	}
	return f.push(frame{kind: f.kind, left: int(n) * each, count: int(n) * each})
}

func (f *framing) push(one frame) error {
	if f.depth == mostDepth {
		return garbled("messages in messages are too deep")
	}
	f.frames[f.depth] = one
	f.depth++
	return nil
}

// ended notes that a value has ended, and all those that end with it. An attribute is none: what
// it is about is yet to come.
func (f *framing) ended(kind byte) error {
	for values := 0; kind != '|'; {
		if f.depth == 0 {
			return f.whole(kind, values)
		}
		at := &f.frames[f.depth-1]
		if err := f.judge(at, kind); err != nil {
			return err
		}
		at.index++
		if at.left > 0 {
			at.left--
		}
		if at.left == 0 && at.pushed > 0 {
			at.left, at.pushed, at.filling = at.pushed, 0, true
		}
		if at.left != 0 {
			return nil
		}
		kind, values = at.kind, at.count
		f.depth--
	}
	return nil
}

// judge looks at a value of an outermost message.
func (f *framing) judge(at *frame, kind byte) error {
	if f.depth > 1 {
		return nil
	}
	if kind == '$' || kind == '+' {
		f.value(at.kind, at.index, f.latest())
	}
	switch {
	case at.kind == '>' && at.index == 0 && kind != '$' && kind != '+':
		return garbled("a push does not say what it is")
	case at.kind == '>' && at.index == 0:
		return f.said(f.latest())
	case kind == '>' && at.kind != '>' && at.kind != '|' && !at.filling && f.patched():
		at.pushed++
	}
	return nil
}

// latest is how the latest string begins.
func (f *framing) latest() []byte { return f.text[:min(f.written, len(f.text))] }
