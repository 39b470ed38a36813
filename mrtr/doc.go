// Package mrtr holds the multi round-trip machine: what happens between a
// legacy client's one request and the modern server's final answer.
//
// A [Flow] is data, not a parked goroutine. It has no clock, no lock, no
// channel and no network; [Flow.Step] takes one event and says what to do next,
// and package bridge does it. That is why a flow can wait in the LRU of
// [Suspended] (or in a file, or on another replica) while a person thinks, and
// why its tests need no time.
//
//	         Send                input_required
//	ADMIT ─────────▶ SENDING ──────────────────▶ GATHERING ──┐
//	                  ▲   │  ▲                      │        │ all answered
//	                  │   │  └──────────────────────┼────────┘
//	            timer │   │ state only              │ cannot be answered
//	                  │   ▼                         ▼
//	                PAUSING                    DONE / SILENT
//
// The package parses rounds and fails closed: an entry that the client never
// declared, a method that may not ask, or a state that is no string ends the
// flow before anything is sent to the client (C-33, D-T6, D-T7).
//
// It does not own the wording of legacy messages (package translate), the
// streams they travel on (package legacy) or the HTTP call (package upstream).
package mrtr
