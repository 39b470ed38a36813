package load

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// preciseTimers lets the calling thread's sleeps end within a microsecond of
// their time instead of the kernel's usual fifty.
func preciseTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) }

// sleepUntil blocks the thread until t.
func sleepUntil(t time.Time) {
	for {
		d := time.Until(t)
		if d <= 0 {
			return
		}
		ts := unix.NsecToTimespec(int64(d))
		if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
			time.Sleep(d)
		}
	}
}
