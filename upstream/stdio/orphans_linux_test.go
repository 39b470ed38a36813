package stdio

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What commands leave behind falls to the first process of a container, as it does here to the nearest one that wants it.
func TestOrphansAreReapedAndOwnProcessesAreNot(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip("left out: ", err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	own := exec.Command("true")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	started.add(own.Process.Pid)
	defer started.remove(own.Process.Pid)
	printed, err := exec.Command("sh", "-c", "sleep 0.05 >/dev/null & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(printed)))
	if err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for late := time.After(20 * time.Second); !isEnded(own.Process.Pid) || !isEnded(orphan); <-look.C {
		select {
		case <-late:
			t.Fatal("they do not end")
		default:
		}
	}
	var r reaper
	r.sweep()
	if !isEnded(orphan) {
		t.Error("somebody may have been about to ask for it")
	}
	r.sweep()
	if isEnded(orphan) {
		t.Error("the orphan is still there")
	}
	if err := own.Wait(); err != nil {
		t.Error("its own process: ", err)
	}
}
