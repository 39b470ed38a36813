package h1

import "time"

// begin prepares for a request with so much body. Nobody else knows of the
// request yet.
func (in *input) begin(length int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if length == 0 {
		in.makeRoomLocked() // for the watcher
	}
	in.quiet = length == 0 || length <= int64(in.buffered()) && in.w < readBuffer
}

// bodyRead says that the request's body was read to its end.
func (in *input) bodyRead() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.quiet {
		return
	}
	in.quiet = true
	in.makeRoomLocked()
	in.ensureLocked()
}

// askLocked has the client's departure told to c. It reports whether that has
// happened already.
func (in *input) askLocked(c *reqContext) (left bool) {
	in.asker = c
	if in.err != nil {
		return true
	}
	in.ensureLocked()
	return false
}

// ensureLocked starts the watcher if one is wanted and possible: the request's body
// must not need the connection, and there must be room for what comes.
func (in *input) ensureLocked() {
	if in.asker == nil || !in.quiet || in.err != nil || in.stopped {
		return
	}
	in.claimed, in.limit = false, time.Time{}
	if at := in.w + in.got; !in.watching && at < readBuffer {
		in.watching = true
		go in.watch(at)
	}
}

// watch reads what the client sends ahead, into the buffer from at on.
func (in *input) watch(at int) {
	for {
		n, err := in.nc.Read(in.page[at:])
		at += n
		if in.watched(n, err, at < readBuffer) {
			return
		}
	}
}

// watched notes what the watcher got, and reports whether it is done.
func (in *input) watched(n int, err error, room bool) (over bool) {
	in.mu.Lock()
	if in.got += n; n > 0 {
		err = nil
	}
	end := err != nil && !timeout(err)
	if !end && (n == 0 && (err == nil || !in.isLateLocked()) || n > 0 && room && !in.claimed) {
		in.mu.Unlock()
		return false
	}
	in.watching = false
	var asker *reqContext
	if end {
		in.err, asker = err, in.asker
	}
	in.cond.Broadcast()
	in.mu.Unlock()
	if asker != nil {
		asker.clientLeft()
	}
	return true
}

// stop ends the watcher and waits for it. What it got is buffered then. The
// connection has no deadline, and gets none from here any more.
func (in *input) stop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.asker, in.claimed, in.stopped = nil, true, true
	if in.watching {
		in.limit = longAgo
		in.deadlineLocked(longAgo)
		for in.watching {
			in.cond.Wait()
		}
	}
	in.w += in.got
	in.got = 0
	if !in.armed.IsZero() {
		in.deadlineLocked(time.Time{})
	}
}
