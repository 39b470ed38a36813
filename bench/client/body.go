package client

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ReadBody returns the whole body, valid until the next exchange.
func (c *Conn) ReadBody() ([]byte, error) {
	c.body = c.body[:0]
	for {
		if len(c.body) == cap(c.body) {
			c.body = append(c.body, 0)[:len(c.body)]
		}
		n, err := c.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		if errors.Is(err, io.EOF) {
			return c.body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Read reads from the body; io.EOF is a body that ended as it should.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.read(p)
	if err != nil && (!errors.Is(err, io.EOF) || c.close || c.left < 0) {
		c.Close()
	}
	return n, err
}

func (c *Conn) read(p []byte) (int, error) {
	if c.ended {
		return 0, io.EOF
	}
	if c.chunked && c.left == 0 {
		if err := c.chunk(); err != nil {
			return 0, err
		}
		if c.ended {
			return 0, io.EOF
		}
	}
	if c.left >= 0 && int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.br.Read(p)
	if c.left < 0 {
		return n, err
	}
	c.left -= int64(n)
	if err != nil {
		return n, noEOF(err)
	}
	if c.left > 0 {
		return n, nil
	}
	if !c.chunked {
		c.ended = true
		return n, nil
	}
	_, err = c.br.Discard(2) // the CRLF behind a chunk
	return n, noEOF(err)
}

// chunk reads the next chunk's size, and the trailer when it is the last.
func (c *Conn) chunk() error {
	line, err := c.line()
	if err != nil {
		return noEOF(err)
	}
	if c.left, err = strconv.ParseInt(string(line), 16, 64); err != nil {
		return fmt.Errorf("client: chunk size %.20q", line)
	}
	if c.left > 0 {
		return nil
	}
	for len(line) > 0 {
		if line, err = c.line(); err != nil {
			return noEOF(err)
		}
	}
	c.ended = true
	return nil
}

// noEOF tells a torn body from one that ended.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
