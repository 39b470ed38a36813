package client

import (
	"bytes"
	"errors"
)

// events reads the messages of an SSE body. Only what MCP uses is known: data
// lines, and fields and comments to skip. The message is valid until the next
// call; its buffer is the connection's own.
type events struct {
	c    *Conn
	r, w int // unread bytes are c.body[r:w]
}

// errFrame is a frame that MCP does not send.
var errFrame = errors.New("client: SSE event with several data lines")

func (c *Conn) events() events {
	if cap(c.body) < c.size {
		c.body = make([]byte, c.size)
	}
	c.body = c.body[:cap(c.body)]
	return events{c: c}
}

// next returns the data of the next event that has some. io.EOF is a stream
// that ended as it should.
func (e *events) next() ([]byte, error) {
	var start, end int // of the data, relative to r so that fill may move it
	pos, data := 0, false
	for {
		n := bytes.IndexByte(e.c.body[e.r+pos:e.w], '\n')
		if n < 0 {
			if err := e.fill(); err != nil {
				return nil, err
			}
			continue
		}
		line := trimCR(e.c.body[e.r+pos : e.r+pos+n])
		switch {
		case len(line) == 0 && data:
			msg := e.c.body[e.r+start : e.r+end]
			e.r += pos + n + 1
			return msg, nil
		case len(line) == 0: // the end of a comment or of a priming event
			e.r, pos = e.r+pos+n+1, 0
			continue
		case bytes.HasPrefix(line, []byte("data:")):
			skip := 5
			if len(line) > 5 && line[5] == ' ' {
				skip = 6
			}
			if data {
				return nil, errFrame
			}
			if len(line) > skip {
				data, start, end = true, pos+skip, pos+len(line)
			}
		}
		pos += n + 1
	}
}

// fill reads more of the body behind the unread bytes.
func (e *events) fill() error {
	if e.r > 0 {
		e.w = copy(e.c.body, e.c.body[e.r:e.w])
		e.r = 0
	}
	if e.w == len(e.c.body) {
		e.c.body = append(e.c.body, make([]byte, len(e.c.body))...)
	}
	n, err := e.c.Read(e.c.body[e.w:])
	e.w += n
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// drain reads the rest of the stream, which must hold no further message.
func (e *events) drain() error {
	msg, err := e.next()
	if err == nil {
		return unexpected("message after the response", msg)
	}
	return eofIsFine(err)
}
