package mrtr

import "time"

// onUnsent sends a round again that never left: at once, but once only (D-15), and
// after that for as long as the outage may last.
func (f *Flow) onUnsent(err error, at Moment) Action {
	if !f.Resent {
		f.Resent = true
		return f.send(at)
	}
	return f.outlast(err, 0, at)
}

// onLost sends a round a second time that may have reached the server but changes
// nothing (D-15).
func (f *Flow) onLost(err error, at Moment) Action {
	if f.Resent {
		return f.fail(err)
	}
	f.Resent = true
	return f.send(at)
}

// onShort waits for memory. Only a retry does, as with outlast, and for as long as its call may take: what it carries was
// acknowledged, and the want is the bridge's own. Whatever the server does after that has its time anew.
func (f *Flow) onShort(err error, at Moment) Action {
	if f.Round == 0 {
		return f.fail(err)
	}
	wait := backoff(outageFirst, outageMost, f.Outage.Tries)
	f.Outage = Outage{Tries: f.Outage.Tries + 1, Until: at.Now.Add(f.limits().Round)}
	return f.pause(wait, at)
}

// outlast waits for a server that was not reached, or that turned the round away, to
// be there again. Only a retry waits: it carries what somebody has just answered,
// while another call can be made again by who made it. The answers stay with the
// suspended flow meanwhile, for as long as a round may take.
func (f *Flow) outlast(err error, after time.Duration, at Moment) Action {
	if f.Round == 0 {
		return f.fail(err)
	}
	if f.Outage.Until.IsZero() {
		f.Outage.Until = at.Now.Add(f.limits().Round)
	}
	wait := max(after, backoff(outageFirst, outageMost, f.Outage.Tries))
	if again := at.Now.Add(wait * 5 / 4); again.After(f.Outage.Until) || again.After(f.Clock.Deadline) {
		return f.fail(err)
	}
	f.Outage.Tries++
	act := f.pause(wait, at)
	if named := at.Now.Add(after); f.Clock.Due.Before(named) { // not before the time that the server named
		f.Clock.Due = named
	}
	return act
}
