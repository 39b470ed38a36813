// Package observe has the words for what can be seen of the bridge: how calls,
// questions and sessions end, and what is under way at a moment. The rooms that know
// report in these words; the rooms below this one make metrics and pages of them.
//
//	bridge, legacy ── Watcher ──▶ observe/metrics     what has ended
//	bridge, legacy ◀─── Sight ─── observe/view        what is under way
//	mount ── decorators ────────▶ observe/tap         every message, while somebody looks;
//	                                   │              always the ends of initialize, sessions
//	                                   ▼              that opened, requests that are handed on
//	                                Watcher           and requests to the server
//
// It holds types and words only. Nothing here knows Prometheus.
package observe
