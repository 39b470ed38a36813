package relay

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Bounds of asking again for streams that broke off.
const (
	minResumes = 5           // in a row without an event, before a response is given up
	minWait    = time.Second // unless the server names another time
	leastWait  = 50 * time.Millisecond
	maxWait    = 30 * time.Second
)

// maxEventID bounds the id of an event that is kept to resume a stream from, in bytes. One
// that is longer leads nowhere: no server takes it in a header.
const maxEventID = 4 << 10

// place is where a stream can be resumed.
type place struct {
	last string
	wait time.Duration // as the server wants it
	busy time.Duration // Retry-After of the newest refusal
}

// rest is what is still to come of a response whose stream broke off.
type rest struct {
	place
	tries int       // in a row that brought nothing
	since time.Time // of the first of them
}

// follow hands the events of a response on until the response is among them. A
// stream that ends before is resumed if the server gave a place to resume from:
// since 2025-11-25 servers end streams on purpose, to be asked again.
func (l *httpLine) follow(ctx context.Context, o *outgoing, resp *http.Response) {
	at := rest{place: place{wait: minWait}}
	for {
		done, err := l.part(o, resp, &at)
		if done {
			return
		}
		if why := unread(err, errUnended); at.last == "" || !errors.Is(why, errUnended) {
			l.fail(ctx, o.id, why)
			return
		}
		if resp, err = l.resume(ctx, o, &at); err != nil { //nolint:bodyclose // part closes it
			l.fail(ctx, o.id, err)
			return
		}
	}
}

// part hands on what one response brings, and reports whether that was all.
func (l *httpLine) part(o *outgoing, resp *http.Response, at *rest) (done bool, err error) {
	defer resp.Body.Close()
	before, began := at.last, time.Now()
	done, err = l.events(resp, &at.place, func(text []byte) bool { return l.receive(o, text) == o.id })
	if at.last != before || time.Since(began) > maxWait {
		at.tries = 0
	}
	return done, err
}

// resume asks for the rest of a response. That repeats nothing, and the server may have the result:
// so what may pass is waited for, as long as a server may be silent.
func (l *httpLine) resume(ctx context.Context, o *outgoing, at *rest) (*http.Response, error) {
	for why := errUnended; ; {
		if at.tries >= minResumes && time.Since(at.since) >= l.server.opt.Silence || !at.pause(ctx) {
			return nil, unresumed(why)
		}
		resp, err := l.exchange(ctx, http.MethodGet, o.caller, nil, at.last)
		if err != nil {
			why = err
			continue
		}
		if resp.StatusCode == http.StatusOK && media(resp) == "text/event-stream" {
			return resp, nil
		}
		why, at.busy = refusal(resp), busyFor(resp)
		ended := l.lost(resp)
		_ = resp.Body.Close()
		switch {
		case ended:
			l.fail(ctx, o.id, errSessionLost)
			l.inbox.Ended(errSessionLost)
			return nil, errSessionLost
		case !returns(resp.StatusCode):
			return nil, unresumed(why)
		}
	}
}

// pause waits before the next try, the longer the more of them brought nothing.
func (r *rest) pause(ctx context.Context) bool {
	if r.tries == 0 {
		r.since = time.Now()
	}
	wait := max(r.wait, min(r.wait<<min(r.tries, 10), longestAgain), r.busy)
	r.tries++
	r.busy = 0
	return pause(ctx, wait)
}

// returns reports whether a server that answers the GET of a stream with this status may have the
// stream in a moment: 409 is for one that has yet to notice that the one before is gone.
func returns(code int) bool {
	switch code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return code >= http.StatusInternalServerError && code != http.StatusNotImplemented
}

// busyFor is for how long the server does not want to be asked for a stream.
func busyFor(resp *http.Response) time.Duration { return min(retryAfter(resp), maxWait) }

// unresumed words that the rest of a response cannot be had. It is never a refusal: after one of
// those clients make their call again, once they have signed in.
func unresumed(why error) error {
	if errors.Is(why, errUnended) {
		return why
	}
	return errors.New("the stream of the response broke off, and its rest cannot be had; what the server was asked may have been done: " + why.Error())
}

// events hands the events of a stream on until take says that it was the last.
func (l *httpLine) events(resp *http.Response, at *place, take func([]byte) bool) (done bool, err error) {
	in := newIntake(resp.Body, l.server.opt.MaxMessage, l.account)
	defer in.close()
	for named := false; ; {
		event, err := in.next()
		if err != nil {
			return false, err
		}
		if named = named || event.ID != ""; named { // else the place is where the stream was resumed
			at.last = event.ID
		}
		if len(at.last) > maxEventID {
			at.last = ""
		}
		if event.Retry >= 0 {
			at.wait = min(max(event.Retry, leastWait), maxWait)
		}
		if len(event.Data) > 0 && take(event.Data) {
			return true, nil
		}
		in.handedOn()
	}
}
