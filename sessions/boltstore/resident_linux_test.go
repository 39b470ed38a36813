package boltstore

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/mcpbridge/bridge/sessions/store"
)

// Within the second until the writer looks again all of a large file could be read.
func TestWhoReadsLargeRecordsGivesTheirPagesBack(t *testing.T) {
	const sessions, size = 64, 1 << 20
	s := large(t, sessions, size)
	path, most := s.db.Path(), 0
	for i := range sessions {
		if _, err := s.Get(background, store.Address{Session: store.Name(fmt.Sprint(i)), Kind: store.Flow, ID: "f"}); err != nil {
			t.Fatal(err)
		}
		most = max(most, mappedOf(t, path))
	}
	if most > mostLooked+24<<20 { // beside each record some pages, too
		t.Errorf("%d bytes of the file were in memory", most)
	}
}

// mappedOf returns how many bytes of a file are mapped and in memory.
func mappedOf(t *testing.T, path string) (sum int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	of := false
	for line := range bytes.Lines(text) {
		var kilobytes int
		switch first, _, _ := bytes.Cut(line, []byte(" ")); {
		case !bytes.HasSuffix(first, []byte(":")): // the head of a mapping
			of = bytes.HasSuffix(bytes.TrimSpace(line), []byte(path))
		case of && string(first) == "Rss:":
			if _, err := fmt.Sscanf(string(line), "Rss: %d kB", &kilobytes); err != nil {
				t.Fatal(err)
			}
			sum += kilobytes << 10
		}
	}
	return sum
}
