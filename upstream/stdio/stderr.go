package stdio

import (
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/logfield"
)

// Bounds on what the log takes of a process's stderr, in bytes: of one line, and of
// all lines in a minute, each counted with what the log adds to it.
const (
	maxStderrLine   = 4 << 10
	stderrPerMinute = 256 << 10
	stderrOverhead  = 128
)

// stderrLog copies a process's stderr into the log. A process that prints without
// end must not fill the disk: of what goes beyond the bound it logs how many lines
// it left out, and the last one, which may be why the process ended.
type stderrLog struct {
	log    zerolog.Logger
	tail   *Tail // remembers the last lines; may be nil
	pid    int
	minute time.Time // the end of the current one
	room   int       // left in it, in bytes
	missed int       // lines left out
	last   string    // of those
}

// relayStderr logs what stderr brings until its end, and draws no conclusions from
// it (E-50).
func relayStderr(stderr io.Reader, out stderrLog) {
	defer out.catchUp()
	br := bufio.NewReaderSize(stderr, maxStderrLine)
	for {
		line, isPrefix, err := br.ReadLine()
		if err != nil {
			return
		}
		if text := strings.ToValidUTF8(strings.TrimSpace(string(line)), "\ufffd"); text != "" {
			out.tail.add(out.pid, text)
			out.add(text)
		}
		for isPrefix && err == nil {
			_, isPrefix, err = br.ReadLine()
		}
	}
}

func (s *stderrLog) add(text string) {
	if now := time.Now(); now.After(s.minute) {
		s.catchUp()
		s.minute, s.room = now.Add(time.Minute), stderrPerMinute
	}
	if s.room -= len(text) + stderrOverhead; s.room < 0 {
		s.missed++
		s.last = text
		return
	}
	s.say(text)
}

// catchUp logs what is known of the lines that were left out.
func (s *stderrLog) catchUp() {
	if s.missed == 0 {
		return
	}
	s.log.Warn().Int("lines", s.missed).Msg("the upstream printed too much on its standard error; lines were left out")
	s.say(s.last)
	s.missed, s.last = 0, ""
}

func (s *stderrLog) say(text string) { logfield.Each(s.log.Info()).Str("stderr", text).Msg("upstream") }
