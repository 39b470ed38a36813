package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the CPU time that a process has used, user and system. It asks
// the kernel's process clock, because /proc/PID/stat counts in steps of 10 ms.
func CPU(pid int) (time.Duration, error) {
	var ts unix.Timespec
	// The clock id of another process's CPU clock, as clock_getcpuclockid(3)
	// builds it: ~pid in the upper bits, 2 for "scheduler time".
	if err := unix.ClockGettime(^int32(pid)<<3|2, &ts); err != nil {
		return 0, fmt.Errorf("proc: CPU clock of %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// RSS returns the resident memory of a process in bytes.
func RSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == "Rss:" {
			kb, err := strconv.ParseInt(string(f[1]), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("proc: no Rss for %d", pid)
}

// FDs returns the number of open descriptors of a process.
func FDs(pid int) (int, error) {
	d, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(d), err
}

// Busy returns the CPU time that the whole machine has used since it booted,
// all processes and the kernel together, and the time stolen by its host.
// Steps of 10 ms.
func Busy() (busy, stolen time.Duration, err error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0, 0, err
	}
	var user, nice, system, idle, wait, irq, soft, steal int64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal); err != nil {
		return 0, 0, fmt.Errorf("proc: /proc/stat: %w", err)
	}
	const tick = 10 * time.Millisecond
	return time.Duration(user+nice+system+irq+soft) * tick, time.Duration(steal) * tick, nil
}

// DescriptorLimit is how many descriptors a process may have open.
func DescriptorLimit() (uint64, error) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return l.Max, err
}
