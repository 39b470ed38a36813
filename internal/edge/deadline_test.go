package edge

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// stream is a response over HTTP/2: when its deadline passes it is reset, whatever is
// going on.
type stream struct {
	*httptest.ResponseRecorder
	timer *time.Timer
	reset atomic.Bool
	slow  time.Duration // how long a write takes
}

func (s *stream) SetWriteDeadline(t time.Time) error {
	if s.timer != nil {
		s.timer.Stop()
	}
	if !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), func() { s.reset.Store(true) })
	}
	return nil
}

func (s *stream) Write(b []byte) (int, error) {
	time.Sleep(s.slow)
	if s.reset.Load() {
		return 0, http.ErrHandlerTimeout
	}
	return len(b), nil
}

// FlushError is for http.ResponseController.
func (s *stream) FlushError() error { _, err := s.Write(nil); return err }

func overH2(s *stream, handler http.HandlerFunc) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.ProtoMajor = 2
	newAddresses(Proxies{}, handler, zerolog.Nop()).ServeHTTP(s, r)
}

// A deadline is for writes: an event stream that is quiet outlives it.
func TestOverHTTP2AStreamThatIsQuietOutlivesTheDeadlineOfItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{ResponseRecorder: httptest.NewRecorder()}
		overH2(s, func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			for range 3 {
				_ = rc.SetWriteDeadline(time.Now().Add(10 * time.Second))
				_, err := w.Write([]byte("data: 1\n\n"))
				if err == nil {
					err = rc.Flush()
				}
				if time.Sleep(time.Minute); err != nil || s.reset.Load() {
					t.Errorf("after a quiet minute: %v, reset %t", err, s.reset.Load())
				}
			}
		})
	})
}

func TestOverHTTP2AWriteThatTakesTooLongIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{ResponseRecorder: httptest.NewRecorder(), slow: time.Minute}
		overH2(s, func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			_ = rc.SetWriteDeadline(time.Now().Add(10 * time.Second))
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("it was written")
			}
			s.reset.Store(false)
			_ = rc.SetWriteDeadline(time.Now().Add(time.Hour))
			cut := time.AfterFunc(time.Second, func() { _ = rc.SetWriteDeadline(time.Now()) }) // while it is written
			defer cut.Stop()
			if err := rc.Flush(); err == nil {
				t.Error("it was not cut short")
			}
		})
	})
}

func TestOverHTTP2WhatAHandlerLeavesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{ResponseRecorder: httptest.NewRecorder()}
		overH2(s, func(http.ResponseWriter, *http.Request) {})
		time.Sleep(2 * lastWords)
		if synctest.Wait(); !s.reset.Load() {
			t.Error("the rest of a response may take for ever")
		}
	})
}
