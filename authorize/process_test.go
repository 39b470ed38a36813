package authorize

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// run runs a process to its end and returns the header that it would send.
func run(t *testing.T, o *orders) string {
	t.Helper()
	cmd := startProcess(t, o)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Errorf("a process: %v", err)
	}
	return strings.TrimSpace(out.String())
}

// Two processes of one client want to sign in at the same time: one tab, and both
// are signed in.
func TestTwoProcessesOneTab(t *testing.T) {
	i := issuer.New(t)
	dir := t.TempDir()
	var wg sync.WaitGroup
	headers := make([]string, 2)
	for n := range headers {
		wg.Go(func() {
			headers[n] = run(t, &orders{Server: i.Endpoint(), Dir: dir, Browser: agreeing(), Refused: Refusal{Status: http.StatusUnauthorized}, Wait: patience})
		})
	}
	wg.Wait()
	if headers[0] == "" || headers[0] != headers[1] || i.Get(&i.Tabs) != 1 || i.Get(&i.Joined) != 1 {
		t.Errorf("got %q; %d tabs, %d registrations", headers, i.Tabs, i.Joined)
	}
}

// A desktop client starts its server twice and kills the first: the tab that the
// dead process opened must still work, and no other may open.
func TestTheTabOfADeadProcessWorks(t *testing.T) {
	i := issuer.New(t)
	dir, tab := t.TempDir(), t.TempDir()+"/tab"
	if err := os.WriteFile(tab+".sh", []byte("#!/bin/sh\necho \"$1\" >> "+tab+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	leader := startProcess(t, &orders{Server: i.Endpoint(), Dir: dir, Browser: []string{"sh", tab + ".sh"}, Refused: Refusal{Status: http.StatusUnauthorized}, Wait: patience})
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	page := waitFor(t, func() string { text, _ := os.ReadFile(tab); return strings.TrimSpace(string(text)) })
	_ = leader.Process.Kill()
	_ = leader.Wait()

	done := make(chan string)
	go func() {
		done <- run(t, &orders{Server: i.Endpoint(), Dir: dir, Browser: []string{"sh", tab + ".sh"}, Refused: Refusal{Status: http.StatusUnauthorized}, Wait: patience})
	}()
	// The person looks at the tab that is open, and agrees. The second process may
	// need a moment to take the port.
	waitFor(t, func() string {
		resp, err := http.Get(page)
		if err != nil {
			return ""
		}
		_ = resp.Body.Close()
		return resp.Status
	})
	if header := <-done; header == "" {
		t.Error("the second process is not signed in")
	}
	if text, _ := os.ReadFile(tab); strings.Count(string(text), "\n") != 1 {
		t.Errorf("these tabs were opened:\n%s", text)
	}
}

// waitFor polls until there is an answer.
func waitFor(t *testing.T, answer func() string) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		if text := answer(); text != "" {
			return text
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("waited in vain")
		}
	}
}

// Ten processes find the token expired at the same time. The authorization server
// takes each refresh token once: a second use would end the login.
func TestTenProcessesOneRefresh(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	age(t, a)
	var wg sync.WaitGroup
	headers := make([]string, 10)
	for n := range headers {
		wg.Go(func() {
			headers[n] = run(t, &orders{Server: i.Endpoint(), Dir: a.opt.Dir, Browser: agreeing(), Wait: patience, Ask: 3})
		})
	}
	wg.Wait()
	for _, header := range headers {
		if header == "" || header != headers[0] {
			t.Errorf("the processes have the headers %q", headers)
			break
		}
	}
	if i.Get(&i.Renewed) != 1 || i.Get(&i.Reused) != 0 || i.Get(&i.Tabs) != 1 {
		t.Errorf("renewed %d times, %d of them with a used token; %d tabs", i.Renewed, i.Reused, i.Tabs)
	}
}
