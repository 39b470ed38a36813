package channel

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// One goroutine tells all sessions of a server what it announces: one that took a large result
// slowly held up all others for as long as a write may take.
func TestAnnouncementsWaitForNoSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(64 << 20)
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		var wrote []string
		proceed := make(chan struct{})
		c := New(context.Background(), Options{Account: account}, nil, downstream.Caller{}, observe.WebSocket, func(msg []byte) error {
			if string(msg) == "slow" {
				<-proceed
			}
			wrote = append(wrote, string(msg))
			return nil
		})
		go c.send([]byte("slow"))
		synctest.Wait()
		told := false
		go func() {
			for range 3 * maxLater {
				c.announce("tools", []byte("tools"))
				c.announce("prompts", []byte("prompts"))
			}
			told = true
		}()
		synctest.Wait()
		if !told {
			t.Error("whoever announces waits for the client")
		}
		close(proceed)
		synctest.Wait()
		c.send([]byte("answer"))
		if !slices.Equal(wrote, []string{"slow", "tools", "prompts", "answer"}) {
			t.Errorf("written: %q", wrote)
		}
		c.Close(ErrDisconnected)
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes are left charged", used)
		}
	})
}

// A client of which more waits than there is room for, or memory, held up what all others hear.
func TestWordsOnListsWaitForNoClientThatReadsNothing(t *testing.T) {
	memory := budget.New(1 << 20)
	account, err := memory.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	for name, fill := range map[string]func(l *later){
		"words on resources": func(l *later) {
			for n := 0; l.add(mcp.NotificationResourcesUpdated+" x:"+strconv.Itoa(n), []byte("updated")); n++ {
			}
		},
		"memory": func(*later) { account.Charge(1 << 20) },
	} {
		l := later{held: budget.On(account)}
		fill(&l)
		for range 2 * maxLater {
			if !l.add(mcp.NotificationToolsListChanged, make([]byte, maxWord)) {
				t.Fatalf("%s: whoever announces waits", name)
			}
		}
		if all := len(l.take()); all > maxLater+1 {
			t.Errorf("%s: %d messages waited", name, all)
		}
		if l.add(mcp.NotificationToolsListChanged, make([]byte, maxLaterBytes+1)) {
			t.Errorf("%s: a long one waits", name)
		}
	}
}

// What waits is bounded: beyond that whoever announces waits, too.
func TestAnnouncementsThatWaitAreBounded(t *testing.T) {
	for size, want := range map[int]int{1: maxLater, maxLaterBytes / 4: 4, maxLaterBytes + 1: 0} {
		var l later
		n := 0
		for l.add("", make([]byte, size)) {
			n++
		}
		if n != want || len(l.take()) != want || l.some() {
			t.Errorf("%d messages of %d bytes wait, want %d", n, size, want)
		}
	}
}
