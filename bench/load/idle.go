package load

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/bench/client"
)

// Idle describes sessions that do nothing: first without any stream, then each
// with its standalone stream open, to which list changes are sent.
type Idle struct {
	Addr     string
	N        int
	Workers  int
	Changes  int          // list changes, one after the other
	Change   func() error // makes the server's list change
	Wait     time.Duration
	Opened   func() // called when the sessions exist; may be nil
	Streamed func() // called when every stream is open; may be nil
}

// IdleResult is what an Idle run found.
type IdleResult struct {
	Sessions, Streams int
	// Last and Median are, for each list change, the time from asking for it
	// until the last and the middle stream had it.
	Last, Median []time.Duration
	Lost         int64 // deliveries that did not come within Wait
	Duplicate    int64
	Errors       Errors
}

// stream is one open standalone stream.
type stream struct {
	conn *client.Conn
	sess *client.Session
	got  atomic.Int64
	last atomic.Int64 // when, in ns since the run began
}

// Run opens the sessions, then the streams, sends the changes and leaves.
func (r Idle) Run() *IdleResult {
	res := &IdleResult{}
	streams := r.open(res)
	call(r.Opened)
	begin := time.Now()
	arrived := make(chan struct{}, r.N*(r.Changes+1))
	var wg sync.WaitGroup
	var leaving atomic.Bool
	each(r.Workers, len(streams), func(_, i int) {
		s := streams[i]
		s.conn = client.NewConn(r.Addr, small)
		s.sess.Move(s.conn)
		if err := s.sess.Listen(); err != nil {
			res.Errors.Add(err)
			s.conn.Close()
			s.conn = nil
			return
		}
		wg.Go(func() {
			err := s.sess.Notifications(func() {
				s.last.Store(int64(time.Since(begin)))
				s.got.Add(1)
				arrived <- struct{}{}
			})
			if !leaving.Load() {
				res.Errors.Add(fmt.Errorf("standalone stream: %w", err))
			}
		})
	})
	streams = slices.DeleteFunc(streams, func(s *stream) bool { return s.conn == nil })
	res.Streams = len(streams)
	call(r.Streamed)
	for n := range r.Changes {
		r.change(res, streams, arrived, begin, int64(n+1))
	}
	leaving.Store(true)
	for _, s := range streams {
		s.conn.Abort()
	}
	wg.Wait()
	r.leave(streams, res)
	return res
}

// open opens the sessions over a few shared connections.
func (r Idle) open(res *IdleResult) []*stream {
	conns := make([]*client.Conn, r.Workers)
	for i := range conns {
		conns[i] = client.NewConn(r.Addr, small)
	}
	streams := make([]*stream, r.N)
	each(r.Workers, r.N, func(worker, i int) {
		s := client.NewSession(r.Addr, conns[worker], nil)
		if err := s.Open(); err != nil {
			res.Errors.Add(err)
			return
		}
		streams[i] = &stream{sess: s}
	})
	for _, c := range conns {
		c.Close()
	}
	streams = slices.DeleteFunc(streams, func(s *stream) bool { return s == nil })
	res.Sessions = len(streams)
	return streams
}

// change makes the n-th list change and waits until every stream had it.
func (r Idle) change(res *IdleResult, streams []*stream, arrived chan struct{}, begin time.Time, n int64) {
	asked := time.Since(begin)
	if err := r.Change(); err != nil {
		res.Errors.Add(err)
		return
	}
	deadline := time.NewTimer(r.Wait)
	defer deadline.Stop()
	for range streams {
		select {
		case <-arrived:
			continue
		case <-deadline.C:
		}
		break
	}
	took := make([]time.Duration, 0, len(streams))
	for _, s := range streams {
		switch got := s.got.Load(); {
		case got < n:
			res.Lost++
		case got > n:
			res.Duplicate++
		}
		took = append(took, time.Duration(s.last.Load())-asked)
	}
	slices.Sort(took)
	if len(took) > 0 {
		res.Last = append(res.Last, took[len(took)-1])
		res.Median = append(res.Median, took[len(took)/2])
	}
}

// leave deletes the sessions over a few fresh connections.
func (r Idle) leave(streams []*stream, res *IdleResult) {
	conns := make([]*client.Conn, r.Workers)
	for i := range conns {
		conns[i] = client.NewConn(r.Addr, small)
	}
	each(r.Workers, len(streams), func(worker, i int) {
		streams[i].sess.Move(conns[worker])
		res.Errors.Add(streams[i].sess.Close())
	})
	for _, c := range conns {
		c.Close()
	}
}

func call(f func()) {
	if f != nil {
		f()
	}
}
