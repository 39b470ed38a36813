package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// errLineTooLong is returned by nextLine for a line beyond the limit; reading
// goes on with the line after it.
var errLineTooLong = errors.New("line too long")

// lineReader reads lines within a limit. Each line owns its memory.
type lineReader struct {
	br    *bufio.Reader
	limit int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns a line without its end. With errLineTooLong it returns the
// beginning of the line.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.br.ReadSlice('\n')
		if len(line)+len(part) > l.limit+1 {
			line = append(line, part[:min(len(part), peekID)]...)
			for err == bufio.ErrBufferFull {
				_, err = l.br.ReadSlice('\n')
			}
			if err != nil {
				return nil, err
			}
			return line, errLineTooLong
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil { // what has no line end was cut off
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// peekID is how far into an oversized message its id is looked for, in bytes.
const peekID = 200

// oversizedID makes out the id of a response that is too long to read: only
// where it stands before everything but jsonrpc, as servers usually write it.
func oversizedID(line []byte) jsonrpc.ID {
	line = line[:min(len(line), peekID)]
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("{"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t")
	if after, ok := bytes.CutPrefix(rest, []byte(`"jsonrpc"`)); ok {
		_, rest, _ = bytes.Cut(after, []byte(","))
		rest = bytes.TrimLeft(rest, " \t")
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`"id"`))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, " \t:")
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	return jsonrpc.ID(rest[:n])
}
