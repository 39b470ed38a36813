package http1

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads a Retry-After value: seconds or an HTTP date. 0 means none.
func RetryAfter(values []string, now time.Time) time.Duration {
	if len(values) == 0 {
		return 0
	}
	v := strings.TrimSpace(values[0])
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}
