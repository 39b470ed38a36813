package stdio

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reapEvery is how often it is looked for orphans, and how long one is left alone at least: what this process has started it
// waits for itself, and at once.
const reapEvery = time.Second

// ReapOrphans takes leave, until ctx ends, of processes that were left to this one by others. The first process of a container
// inherits whatever a command has started and not waited for; each that ends takes a place among the
// container's processes until somebody asks what became of it, and with all of them taken no command can be started any more.
func ReapOrphans(ctx context.Context) {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	var r reaper
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.sweep()
		}
	}
}

// reaper knows which children had ended at its last look.
type reaper struct{ ended map[int]bool }

// sweep takes leave of those that had ended by then, and that nobody has asked for since.
func (r *reaper) sweep() {
	before := r.ended
	r.ended = nil
	if !anyEnded() {
		return
	}
	r.ended = endedChildren()
	for pid := range r.ended {
		if before[pid] && !started.has(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// anyEnded reports whether a child has ended and nobody has asked for it.
func anyEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// endedChildren lists all of them, of which the kernel names no more than one at a time.
func endedChildren() map[int]bool {
	list := map[int]bool{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && isEnded(pid) {
			list[pid] = true
		}
	}
	return list
}

// isEnded reads "PID (NAME) STATE PARENT …", in which a name may have anything.
func isEnded(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	return len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(os.Getpid())
}

// started are the processes of this package that it has yet to wait for, which may take its time.
var started family

type family struct {
	mu   sync.Mutex
	pids map[int]struct{}
}

func (f *family) add(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pids == nil {
		f.pids = map[int]struct{}{}
	}
	f.pids[pid] = struct{}{}
}

func (f *family) remove(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pids, pid)
}

func (f *family) has(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, is := f.pids[pid]
	return is
}
