package channel

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
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
