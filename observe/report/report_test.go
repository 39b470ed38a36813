package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestABookIsReadAsItWasSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	b, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	b.now = func() time.Time { return now }
	v := b.Session("claude\x1b-ai", "0.1.0", "2025-06-18")
	v.Called(true)
	v.Called(false)
	v.Answered()
	b.Session("old", "1", "2024-11-05")
	b.Modern("codex/2.0 (linux)", "2026-07-28")
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	again, err := Open(file)
	if err != nil || len(again.clients) != 3 {
		t.Fatalf("%v %+v", err, again)
	}
	list, _ := Read(file)
	said := Summary(list)
	for i := range list {
		said += "\n" + list[i].Name + " " + list[i].Version + ": " + list[i].Verdict()
	}
	for _, says := range []string{"3 kinds of clients", "2 need the bridge, and 1 could go direct",
		"claude-ai 0.1.0: needs the bridge for its revision, questions (1 answered), streams (progress of 1 calls)", "codex 2.0: could go direct", "old 1: needs the bridge for its revision"} {
		if !strings.Contains(said, says) {
			t.Errorf("no %q in\n%s", says, said)
		}
	}
	// Who has not come for 30 days is forgotten.
	again.now = func() time.Time { return now.Add((Days + 1) * 24 * time.Hour) }
	again.Session("new", "1", "2025-11-25")
	if err := again.Save(); err != nil {
		t.Fatal(err)
	}
	if list, err := Read(file); err != nil || len(list) != 1 || list[0].Name != "new" {
		t.Errorf("%v %+v", err, list)
	}
}

func TestNamesOfClientsAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	b, _ := Open(file)
	for i := range 10 * maxClients {
		b.Session(fmt.Sprint(strings.Repeat("x", 1000), i), fmt.Sprint(i), "2025-06-18")
	}
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || len(b.clients) > maxClients+1 || info.Size() > 64<<10 {
		t.Errorf("%d clients, %d bytes, %v", len(b.clients), info.Size(), err)
	}
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil {
		t.Error("nonsense is a report")
	}
	var none *Book
	none.Session("a", "b", "c").Called(true)
	if err := none.Save(); err != nil {
		t.Error(err)
	}
	b := &Book{file: filepath.Join(t.TempDir(), "missing", "x"), now: time.Now, clients: map[key]*Client{}}
	b.Session("a", "", "")
	if b.Save() == nil {
		t.Error("a directory that is missing was written to")
	}
}
