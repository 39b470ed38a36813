package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/observe"
)

// Verdict says what a client needs the bridge for.
func (c *Client) Verdict() string {
	switch {
	case c.Modern:
		return "could go direct: it speaks the server's revision, and the bridge only hands on"
	case c.Relayed:
		return "could go direct: the server speaks its revision, and the bridge only hands on"
	}
	needs := []string{"its revision"}
	if c.Answers > 0 {
		needs = append(needs, fmt.Sprintf("questions (%d answered)", c.Answers))
	}
	if streams := c.streams(); streams != "" {
		needs = append(needs, "streams ("+streams+")")
	}
	if lost := c.projections(); lost != "" {
		needs = append(needs, "projections ("+lost+")")
	}
	return "needs the bridge for " + strings.Join(needs, ", ")
}

// streams says what a client wants to hear outside of answers; "": nothing.
func (c *Client) streams() string {
	var parts []string
	if c.Progress > 0 {
		parts = append(parts, "progress of "+observe.Plural(c.Progress, "call"))
	}
	if c.Follows > 0 {
		parts = append(parts, "updates of "+observe.Plural(c.Follows, "resource"))
	}
	return strings.Join(parts, ", ")
}

// projections says what the client got in the words of its revision; "": nothing.
func (c *Client) projections() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(c.Lost)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, c.Lost[what]))
	}
	return strings.Join(parts, ", ")
}

// Visits says how often the client came.
func (c *Client) Visits() string {
	if c.Modern {
		return observe.Plural(c.Sessions, "request")
	}
	return observe.Plural(c.Sessions, "session")
}

// Summary says whether the bridge is still needed.
func (r *Report) Summary() string {
	direct := 0
	for i := range r.Clients {
		if r.Clients[i].Modern || r.Clients[i].Relayed {
			direct++
		}
	}
	switch need := len(r.Clients) - direct; {
	case len(r.Clients) == 0:
		return fmt.Sprintf("No client came in the last %d days.", Days)
	case need == 0:
		return fmt.Sprintf("No client of the last %d days needs the bridge: all could go direct.", Days)
	default:
		return fmt.Sprintf("Of %s in the last %d days %s the bridge, and %d could go direct.",
			observe.Plural(len(r.Clients), "kind of client", "kinds of clients"), Days, observe.Plural(need, "needs", "need"), direct)
	}
}
