package bridge

import (
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/translate"
)

// Servers that speak a draft of 2026-07-28 are internal/dialect's business. Here
// is what only the sessions can do for them.

// hintAtDraft adds to the log line of a refused result what would make sense of
// it (I-5).
func hintAtDraft(event *zerolog.Event, result []byte) *zerolog.Event {
	if translate.HintsAtDraft(result) {
		return event.Str("hint", "the server seems to speak a draft of 2026-07-28; the setting draft: on admits that")
	}
	return event
}
