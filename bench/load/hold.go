package load

import (
	"sync"
	"time"

	"github.com/mcpbridge/bridge/bench/client"
	"github.com/mcpbridge/bridge/bench/stub"
)

// small is the read buffer of connections that are opened by the thousand.
const small = 1024

// Hold describes N calls that each wait for their answer at the same time,
// every one in a session of its own and with its stream open.
type Hold struct {
	Addr    string
	N       int
	Workers int    // how many calls are opened or answered at once
	Held    func() // called while all of them are suspended; may be nil
}

// HoldResult is what a Hold run found.
type HoldResult struct {
	Held   int           // calls that reached their question
	Done   int           // of those, completed and checked
	Open   time.Duration // to open all of them
	Answer time.Duration // to answer all of them and read every result
	Errors Errors
}

type held struct {
	conn *client.Conn
	sess *client.Session
	call *client.Held
}

// Run suspends the calls, answers them all, and deletes the sessions.
func (h Hold) Run() *HoldResult {
	res := &HoldResult{}
	start := time.Now()
	calls := make([]held, h.N)
	each(h.Workers, h.N, func(_, i int) {
		c, err := h.suspend(i)
		res.Errors.Add(err)
		calls[i] = c
	})
	res.Open = time.Since(start)
	for _, c := range calls {
		if c.call != nil {
			res.Held++
		}
	}
	if h.Held != nil {
		h.Held()
	}
	h.answer(calls, res)
	return res
}

func (h Hold) suspend(n int) (held, error) {
	conn := client.NewConnOf(n, h.Addr, small)
	s := client.NewSession(h.Addr, conn, nil)
	if err := s.Open(); err != nil {
		conn.Close()
		return held{}, err
	}
	call, err := s.Suspend(stub.Ask, nonce())
	if err != nil {
		conn.Close()
		return held{}, err
	}
	call.Rest()
	return held{conn: conn, sess: s, call: call}, nil
}

func (h Hold) answer(calls []held, res *HoldResult) {
	start := time.Now()
	conns := make([]*client.Conn, h.Workers)
	for i := range conns {
		conns[i] = client.NewConnOf(i, h.Addr, small)
	}
	ok := make([]bool, len(calls))
	each(h.Workers, len(calls), func(worker, i int) {
		c := calls[i]
		if c.call == nil {
			return
		}
		err := c.call.Resume(conns[worker])
		if err != nil {
			res.Errors.Add(err)
			conns[worker].Close()
		}
		ok[i] = err == nil
	})
	res.Answer = time.Since(start)
	each(h.Workers, len(calls), func(_, i int) {
		if ok[i] {
			res.Errors.Add(calls[i].sess.Close())
		}
		if calls[i].conn != nil {
			calls[i].conn.Close()
		}
	})
	for _, c := range conns {
		c.Close()
	}
	for _, done := range ok {
		if done {
			res.Done++
		}
	}
}

// each calls f(worker, i) for every i below n, on a number of workers.
func each(workers, n int, f func(worker, i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range next {
				f(w, i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
