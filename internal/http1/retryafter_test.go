package http1

import (
	"testing"
	"time"
)

func TestRetryAfterValues(t *testing.T) {
	now := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"3": 3 * time.Second, " 3 ": 3 * time.Second, "003": 3 * time.Second,
		"0": leastRetry, "00": leastRetry, "99999999999": mostRetry, "99999999999999999999999": mostRetry,
		"Tue, 28 Jul 2026 00:00:07 GMT": 7 * time.Second, "Tue, 28 Jul 2026 00:00:00 GMT": leastRetry,
		"Tue, 28 Jul 2020 00:00:07 GMT": leastRetry, "Fri, 31 Dec 9999 23:59:59 GMT": mostRetry,
		"-1": 0, "+1": 0, "1.5": 0, "x": 0, "": 0,
	} {
		if got := RetryAfter([]string{v}, now); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
	if RetryAfter(nil, now) != 0 {
		t.Error("no value")
	}
}
