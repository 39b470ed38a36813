//go:build linux

package legacy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

// Nothing that is sent while the client reads is dropped, however much comes at
// once: the log bounds what is kept for those who are away (E-20).
func TestBurstBeyondTheLogReachesAClientThatReads_E20(t *testing.T) {
	large := `{"r":"` + strings.Repeat("r", 1_200_000) + `"}`
	for name, tc := range map[string]struct {
		notes, size int
		result      string
		log         sessions.Limits
	}{
		"a note and a large result":  {1, 10, large, sessions.Limits{}},
		"a large note":               {1, 1_000_000, `{}`, sessions.Limits{}},
		"many middling notes":        {100, 40_000, `{}`, sessions.Limits{}},
		"more notes than the log":    {2000, 10, `{}`, sessions.Limits{}},
		"a log that holds one event": {20, 10, `{}`, sessions.Limits{Events: 1}},
	} {
		for _, version := range []mcp.Version{"", mcp.V20250618, mcp.V20251125} {
			for _, stage := range []string{"fresh", "committed", "parked"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, version, stage), func(t *testing.T) {
					wantBurst(t, version, stage, tc.log, tc.notes, func(k *call) { k.burst(tc.notes, tc.size, tc.result) })
				})
			}
		}
	}
}

func wantBurst(t *testing.T, version mcp.Version, stage string, log sessions.Limits, notes int, burst func(*call)) {
	opt := Options{Log: log, CommitDelay: time.Minute, ParkAfter: time.Minute}
	if stage != "fresh" {
		opt.CommitDelay = janitorStep
	}
	if stage == "parked" {
		testmode.NeedsParking(t)
		opt.ParkAfter = janitorStep
	}
	b := newFake()
	h, p := serve(t, opt, b)
	if version != "" {
		p.initialize(version)
	}
	answer := p.async(hold)
	k := <-b.held
	switch stage {
	case "parked":
		eventually(t, "parked", func() bool { n, _ := h.streams.Parked(); return n == 1 })
	case "committed":
		eventually(t, "committed", func() bool { return h.exchanges.Fresh() == 0 })
	}
	go burst(k)
	got := readEvents(t, <-answer)
	var data []string
	for _, ev := range got.rest() {
		if _, text, _ := strings.Cut(ev, "|"); text != "" {
			data = append(data, text)
		}
	}
	if len(data) != notes+1 || !strings.Contains(data[len(data)-1], `"result"`) {
		t.Fatalf("%d messages of %d, and no answer last", len(data), notes+1)
	}
	for n, msg := range data[:notes] {
		if !strings.Contains(msg, fmt.Sprintf(`"n":%d,`, n)) {
			t.Fatalf("message %d is %.80s", n, msg)
		}
	}
}
