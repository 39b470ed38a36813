package h1

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"github.com/mcpbridge/bridge/internal/http1"
)

// framing is how the end of a body is known.
type framing int

const (
	byLength framing = iota
	byChunks
	byClose
)

// Response is the response of one exchange. It is valid until Finish or Abort,
// one of which must be called once, and is not safe for concurrent use.
type Response struct {
	head
	cn      *conn
	framing framing
	left    int64 // of the body, or of the current chunk
	inChunk bool  // the line end after a chunk's data is still to be read
	done    bool  // the body was read to its end
	err     error // sticky
}

// Status is the status code.
func (r *Response) Status() int { return r.status }

// Media is the media type in lower case, without parameters.
func (r *Response) Media() string { return r.media }

// Length is the announced length of the body, -1 when there is none.
func (r *Response) Length() int64 { return r.length }

func (r *Response) reset() { r.err, r.done, r.inChunk, r.left = nil, false, false, 0 }

// readHead reads the head and sets the body up.
func (r *Response) readHead(br *bufio.Reader, limit int) (nothing bool, err error) {
	if nothing, err = r.head.readHead(br, limit); err != nil {
		return nothing, err
	}
	switch {
	case r.status == 204 || r.status == 304:
		r.framing, r.length, r.left = byLength, 0, 0
	case r.chunked:
		r.framing = byChunks
	case r.length >= 0:
		r.framing, r.left = byLength, r.length
	default:
		r.framing, r.close = byClose, true
	}
	r.done = r.framing == byLength && r.left == 0
	return false, nil
}

// Read reads the body. It returns io.EOF at its proper end and
// io.ErrUnexpectedEOF when the connection ended before that.
func (r *Response) Read(p []byte) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.read(r.cn.br, p)
	if err == io.EOF {
		r.done = true
	} else if err != nil {
		r.err = err
	}
	return n, err
}

func (r *Response) read(br *bufio.Reader, p []byte) (int, error) {
	switch r.framing {
	case byClose:
		return br.Read(p)
	case byLength:
		n, err := r.readSome(br, p)
		if err == nil && r.left == 0 {
			r.done = true
		}
		return n, err
	}
	if r.left == 0 {
		if err := r.nextChunk(br); err != nil {
			return 0, err
		}
	}
	n, err := r.readSome(br, p)
	for err == nil && n < len(p) && r.moreBuffered(br) {
		if err = r.nextChunk(br); err == nil && br.Buffered() > 0 {
			var m int
			m, err = r.readSome(br, p[n:])
			n += m
		}
	}
	return n, err
}

// readSome reads what is left of the body or chunk, or a part of it.
func (r *Response) readSome(br *bufio.Reader, p []byte) (int, error) {
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := br.Read(p)
	r.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// moreBuffered reports whether the next chunk can be begun without waiting for
// the peer. So the events that a server wrote one by one, each a chunk, come
// out of one Read when they came in by one. The last chunk is left for the next
// Read.
func (r *Response) moreBuffered(br *bufio.Reader) bool {
	if r.left > 0 {
		return false
	}
	have, _ := br.Peek(br.Buffered())
	have, ok := bytes.CutPrefix(have, []byte("\r\n"))
	return ok && len(have) > 0 && have[0] != '0' && bytes.IndexByte(have, '\n') >= 0
}

// Arriving reports whether the next Read is sure to return at once with content,
// as far as a look at the socket shows. A server that writes events one by one is
// often about to write the next, and passing two on together saves half the work.
func (r *Response) Arriving() bool {
	cn := r.cn
	if r.done || r.err != nil || !cn.nc.Peekable() {
		return false
	}
	rest, _ := cn.br.Peek(cn.br.Buffered())
	ended := r.inChunk && r.left == 0 && string(rest) == "\r\n"
	if len(rest) > 0 && !ended {
		return false
	}
	n, _ := cn.nc.Peek(cn.peeked[:])
	have := cn.peeked[:n]
	if r.framing != byChunks || r.left > 0 {
		return n > 0
	}
	if r.inChunk && !ended {
		if have, ended = bytes.CutPrefix(have, []byte("\r\n")); !ended {
			return false
		}
	}
	line := bytes.IndexByte(have, '\n')
	return line > 0 && line+1 < len(have) && have[0] != '0'
}

// nextChunk reads a chunk's size line, or the end of the body: io.EOF.
func (r *Response) nextChunk(br *bufio.Reader) error {
	if r.inChunk {
		if err := expect(br, "\r\n"); err != nil {
			return err
		}
		r.inChunk = false
	}
	line, err := br.ReadSlice('\n')
	if err != nil {
		return brokenLine(err)
	}
	n, ok := http1.ParseChunkSize(line)
	if !ok {
		return malformed("chunk size")
	}
	if n == 0 {
		return r.trailer(br)
	}
	r.left, r.inChunk = n, true
	return nil
}

// trailer skips the trailer fields, within the limit of a head.
func (r *Response) trailer(br *bufio.Reader) error {
	for total := 0; ; {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return brokenLine(err)
		}
		if len(line) == 2 && line[0] == '\r' {
			return io.EOF
		}
		if total += len(line); total > r.cn.client.opt.MaxHead {
			return malformed("trailer too large")
		}
		line, ok := bytes.CutSuffix(line, []byte("\r\n"))
		if _, _, field := http1.CutField(line); !ok || !field {
			return malformed("trailer")
		}
	}
}

func brokenLine(err error) error {
	switch err {
	case bufio.ErrBufferFull:
		return malformed("line too long")
	case io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

func expect(br *bufio.Reader, want string) error {
	for i := range len(want) {
		c, err := br.ReadByte()
		if err != nil {
			return brokenLine(err)
		}
		if c != want[i] {
			return malformed("end of chunk")
		}
	}
	return nil
}

// Finish ends an exchange whose content is no longer needed. The connection is
// reused when the response has ended, or ends soon with nothing more in it: an
// event stream is often read to its last event before its end arrives.
func (r *Response) Finish() {
	cn := r.cn
	if r.err != nil || r.close {
		cn.drop()
		return
	}
	if r.done {
		if cn.br.Buffered() > 0 {
			cn.drop()
			return
		}
		cn.release("")
		return
	}
	pending, ok := r.missing()
	if !ok {
		cn.drop()
		return
	}
	cn.release(pending)
}

// missing returns what has yet to arrive for a chunked body to end without
// further content, and takes what is already there out of the buffer.
func (r *Response) missing() (string, bool) {
	if r.framing != byChunks || r.left > 0 || !r.cn.nc.Peekable() {
		return "", false
	}
	rest := http1.LastChunk
	if r.inChunk {
		rest = http1.LineEnd + http1.LastChunk
	}
	have, _ := r.cn.br.Peek(r.cn.br.Buffered())
	if !strings.HasPrefix(rest, string(have)) {
		return "", false
	}
	n, _ := r.cn.br.Discard(len(have))
	return rest[n:], true
}

// Abort ends an exchange by closing its connection.
func (r *Response) Abort() { r.cn.drop() }
