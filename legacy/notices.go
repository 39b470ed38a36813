package legacy

import (
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/rs/zerolog"
)

// noticeBurst is how many lines of one kind clients can cause per minute, so that
// none of them fills the disk.
const noticeBurst = 20

// notices are the loggers for what clients cause, one per kind, each with a rate of
// its own.
type notices struct {
	slow    zerolog.Logger // connections that were let go
	evicted zerolog.Logger // sessions that had to go for others
	late    zerolog.Logger // refusals of credentials that came too late for their requests
	full    zerolog.Logger // clients that were refused
	busy    zerolog.Logger // requests beyond limits.in-flight
	unknown zerolog.Logger // requests of sessions that are not here
	short   zerolog.Logger // what was refused for want of memory
	fast    zerolog.Logger // requests beyond rates
	answer  zerolog.Logger // answers to questions that are not open
	dropped zerolog.Logger // messages on connections that cannot be answered
}

func newNotices(log zerolog.Logger) notices {
	kind := func() zerolog.Logger { return logfield.AtMost(noticeBurst, log) }
	return notices{slow: kind(), evicted: kind(), late: kind(), full: kind(), busy: kind(), unknown: kind(), short: kind(), fast: kind(), answer: kind(), dropped: kind()}
}
