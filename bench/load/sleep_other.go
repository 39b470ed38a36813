//go:build !linux

package load

import "time"

func preciseTimers() {}

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
