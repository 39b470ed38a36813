package legacy

import (
	"errors"
	"os"
	"time"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/sessions"
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
	full    zerolog.Logger // clients that were refused
	busy    zerolog.Logger // requests beyond limits.in-flight
	unknown zerolog.Logger // requests of sessions that are not here
}

func newNotices(log zerolog.Logger) notices {
	kind := func() zerolog.Logger {
		return log.Sample(&zerolog.BurstSampler{Burst: noticeBurst, Period: time.Minute})
	}
	return notices{slow: kind(), evicted: kind(), full: kind(), busy: kind(), unknown: kind()}
}

// letGo logs that a carrier was let go since its client does not read. s is nil for
// a stream without a session, the rest of which is lost.
func (n *notices) letGo(s *session, st *sessions.Stream, why error) {
	if !errors.Is(why, sessions.ErrLagging) && !errors.Is(why, errSlow) && !errors.Is(why, os.ErrDeadlineExceeded) {
		return
	}
	line := n.slow.Warn().Uint64(logfield.StreamID, st.ID()).Str(logfield.Cause, why.Error()).Bool("resumable", s != nil)
	if s != nil {
		line = line.Str(logfield.SessionID, logfield.Short(s.rec.ID))
	}
	line.Msg("a client reads too slowly; its connection was let go")
}
