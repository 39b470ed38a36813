package http1

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of a time that a server names. "Now" is a time, too (clocks differ, so a date may be past), but whoever comes
// back at once, and again and again, is what such a server has too much of.
const (
	leastRetry = 250 * time.Millisecond
	mostRetry  = 365 * 24 * time.Hour // nobody waits as long; what is computed with it does not overflow
)

// RetryAfter reads a Retry-After value: seconds, as many digits as there are, or an HTTP date. 0 means that none is
// named, which a time never is.
func RetryAfter(values []string, now time.Time) time.Duration {
	if len(values) == 0 {
		return 0
	}
	v := strings.TrimSpace(values[0])
	var after time.Duration
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, _ := strconv.ParseUint(v, 10, 64) // what exceeds it is the greatest there is
		after = time.Duration(min(n, uint64(mostRetry/time.Second))) * time.Second
	} else if t, err := http.ParseTime(v); err == nil {
		after = t.Sub(now)
	} else {
		return 0
	}
	return min(max(after, leastRetry), mostRetry)
}
