package http1

import (
	"testing"
	"time"
)

func TestRetryAfterValues(t *testing.T) {
	now := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"3": 3 * time.Second, " 3 ": 3 * time.Second, "-1": 0, "x": 0, "": 0, "99999999999": 0,
		"Tue, 28 Jul 2026 00:00:07 GMT": 7 * time.Second, "Tue, 28 Jul 2020 00:00:07 GMT": 0,
	} {
		if got := RetryAfter([]string{v}, now); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
	if RetryAfter(nil, now) != 0 {
		t.Error("no value")
	}
}
