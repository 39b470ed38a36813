package report

import (
	"fmt"
	"strings"
)

// Verdict says what a client needs the bridge for.
func (c *Client) Verdict() string {
	if c.Modern {
		return "could go direct: it speaks the server's revision, and the bridge only hands on"
	}
	needs := []string{"its revision"}
	if c.Answers > 0 {
		needs = append(needs, fmt.Sprintf("questions (%d answered)", c.Answers))
	}
	if c.Progress > 0 {
		needs = append(needs, fmt.Sprintf("streams (progress of %d calls)", c.Progress))
	}
	return "needs the bridge for " + strings.Join(needs, ", ")
}

// Summary says whether the bridge is still needed.
func Summary(clients []Client) string {
	modern := 0
	for i := range clients {
		if clients[i].Modern {
			modern++
		}
	}
	switch legacy := len(clients) - modern; {
	case len(clients) == 0:
		return fmt.Sprintf("No client came in the last %d days.", Days)
	case legacy == 0:
		return fmt.Sprintf("No client of the last %d days needs the bridge: all could go direct.", Days)
	default:
		return fmt.Sprintf("Of %d kinds of clients in the last %d days %d need the bridge, and %d could go direct.", len(clients), Days, legacy, modern)
	}
}
