package channel

import (
	"errors"
	"testing"

	"github.com/mcpbridge/bridge/observe"
)

// ended takes the ends of sessions.
type ended struct {
	observe.Nobody
	session observe.Session
}

func (e *ended) SessionEnded(s observe.Session) { e.session = s }

// TestTheEndOfABrokenConnectionIsAnError: one that its client closed is none.
func TestTheEndOfABrokenConnectionIsAnError(t *testing.T) {
	for _, why := range []error{nil, errors.New("connection reset")} {
		watch := &ended{}
		c := idle()
		c.opt.Watch = watch
		c.HangUp(why)
		c.reportEnd(ErrDisconnected)
		if watch.session.Broken != (why != nil) || watch.session.Reason != observe.Disconnected {
			t.Errorf("%v: %+v", why, watch.session)
		}
	}
	watch := &ended{}
	c := idle()
	c.opt.Watch = watch
	if c.reportEnd(ErrDisconnected); watch.session.Broken {
		t.Error("a connection that stands is broken")
	}
}
