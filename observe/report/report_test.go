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
	v.Called(true, false)
	v.Called(false, true)
	v.Answered()
	b.Session("old", "1", "2024-11-05")
	v = b.Again("claude-ai", "0.1.0", "2025-06-18") // in another process
	v.Lost("schema_wrapped")
	v.Lost("audio")
	v.Lost("audio")
	(*Visit)(nil).Lost("audio")
	b.Relayed("peer", "3", "2025-11-25")
	b.Modern("codex/2.0 (linux)", "2026-07-28")
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	again, err := Open(file)
	if err != nil || len(again.clients) != 4 {
		t.Fatalf("%v %+v", err, again)
	}
	list, _ := Read(file)
	said := list.Summary()
	for i := range list.Clients {
		said += "\n" + list.Clients[i].Name + " " + list.Clients[i].Version + ": " + list.Clients[i].Verdict()
	}
	for _, says := range []string{"4 kinds of clients", "2 need the bridge, and 2 could go direct", "peer 3: could go direct: the server speaks its revision",
		"claude-ai 0.1.0: needs the bridge for its revision, questions (1 answered), streams (progress of 1 call, updates of 1 resource), projections (audio 2, schema_wrapped 1)", "codex 2.0: could go direct", "old 1: needs the bridge for its revision"} {
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
	if list, err := Read(file); err != nil || len(list.Clients) != 1 || list.Clients[0].Name != "new" {
		t.Errorf("%v %+v", err, list)
	}
}

func TestNamesOfClientsAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	b, _ := Open(file)
	loser := b.Session("loser", "1", "2025-06-18")
	for i := range 10 * maxClients {
		b.Session(fmt.Sprint(strings.Repeat("x", 1000), i), fmt.Sprint(i), "2025-06-18")
		b.Modern("agent/1", fmt.Sprint("revision", i)) // which a peer writes, too
		loser.Lost(fmt.Sprint(i))
	}
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || len(b.clients) > maxClients+maxOthers+1 || len(loser.of.Lost) > maxLosses || info.Size() > 64<<10 {
		t.Errorf("%d clients, %d bytes, %v", len(b.clients), info.Size(), err)
	}
}

// Names cost nothing: those that somebody made up keep out nobody who comes again, nor whoever makes calls.
func TestMadeUpNamesKeepOutNoRealClient(t *testing.T) {
	b, err := Open(filepath.Join(t.TempDir(), "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	b.now = func() time.Time { now = now.Add(time.Second); return now }
	made := 0
	flood := func() {
		for range 2 * maxClients {
			made++
			b.Session(fmt.Sprint("made-up-", made), "1", "2025-06-18")
			b.Session(other, fmt.Sprint(made), fmt.Sprint("revision", made))
		}
	}
	flood()
	steady := b.Session("steady", "1", "2025-06-18")
	steady.Called(false, false)
	flood()
	b.Session("again", "1", "2025-06-18")
	b.Session("again", "1", "2025-06-18")
	long := b.Session("long", "1", "2025-06-18")
	flood()
	for range 3 { // of a session that made no call for so long that others took its place
		long.Called(false, false)
	}
	flood()
	steady.Called(false, false)
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	r, err := Read(b.file)
	if err != nil || len(r.Clients) > maxClients+maxOthers+1 {
		t.Fatalf("%d clients, %v", len(r.Clients), err)
	}
	sessions, found := 0, map[string]Client{}
	for _, c := range r.Clients {
		sessions += c.Sessions
		found[c.Name] = c
	}
	if found["steady"].Calls != 2 || found["again"].Sessions != 2 || found["long"].Calls != 3 {
		t.Errorf("who is really there: %+v, %+v, %+v", found["steady"], found["again"], found["long"])
	}
	if sessions != 2*made+4 {
		t.Errorf("%d sessions of %d", sessions, 2*made+4)
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
	visit := none.Session("a", "b", "c")
	visit.Called(true, false)
	if err := none.Save(); err != nil {
		t.Error(err)
	}
	b := &Book{file: filepath.Join(t.TempDir(), "missing", "x"), now: time.Now, clients: map[key]*Client{}}
	b.Session("a", "", "")
	if b.Save() == nil {
		t.Error("a directory that is missing was written to")
	}
}

func TestAReportOfAnEarlierReleaseIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte(`[{"name":"c","revision":"2025-06-18","sessions":3}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Read(file); err != nil || len(r.Clients) != 1 || r.Clients[0].Sessions != 3 {
		t.Errorf("%+v %v", r, err)
	}
}
