package passthrough

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// messages tells the messages of an event stream from its comments while it passes.
type messages struct{ within bool } // a line

// in reports whether a part has the beginning of a line of data.
func (m *messages) in(part []byte) (found bool) {
	for len(part) > 0 {
		found = found || !m.within && part[0] == 'd'
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			m.within = true
			return found
		}
		part, m.within = part[end+1:], false
	}
	return found
}

// streams knows of the streams that clients have opened in their sessions with the server when something
// last came over one.
type streams struct {
	mu  sync.Mutex
	all map[string]*sessionStreams
}

// sessionStreams are the streams of one session that are open.
type sessionStreams struct {
	open  int
	since time.Time // one has been open all the time
	last  time.Time // zero: nothing has come
}

func (s *streams) open(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*sessionStreams{}
	}
	if s.all[session] == nil {
		s.all[session] = &sessionStreams{since: time.Now()}
	}
	s.all[session].open++
}

func (s *streams) close(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.all[session]; of != nil {
		if of.open--; of.open == 0 {
			delete(s.all, session)
		}
	}
}

func (s *streams) heard(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.all[session]; of != nil {
		of.last = time.Now()
	}
}

// mayAsk reports whether a server may have asked something in a session since then: something has come over a stream
// that is open here, or none has been open here all the time. Such a session may have one at the mount from before a
// reload, or at another replica. Of a server that has begun to answer that is not believed without a sign.
func (s *streams) mayAsk(session string, then time.Time, answers bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[session]
	if of == nil {
		return !answers
	}
	return !of.last.Before(then) || of.since.After(then) && !answers
}

// streamBody is the body of such a stream.
type streamBody struct {
	io.ReadCloser
	of      *streams
	session string
	alive   func(part []byte) bool
	over    sync.Once
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.alive(p[:n]) {
		b.of.heard(b.session)
	}
	return n, err
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	b.over.Do(func() { b.of.close(b.session) })
	return b.ReadCloser.Close()
}
