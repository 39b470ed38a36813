// Command fill puts sessions into a store, for comparisons that need a full one.
//
//	go run ./bench/fill -url file:PATH -n 100000
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/sessions/boltstore"
	"github.com/mcpbridge/bridge/sessions/redisstore"
	"github.com/mcpbridge/bridge/sessions/store"
)

// recordSize is about what a session with a client's capabilities takes.
const recordSize = 600

func main() {
	url := flag.String("url", "", "of the store")
	n := flag.Int("n", 100_000, "how many sessions")
	flag.Parse()
	if err := fill(*url, *n); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func fill(url string, n int) (err error) {
	ctx := context.Background()
	var s store.Store
	if path, isFile := strings.CutPrefix(url, "file:"); isFile {
		s, err = boltstore.Open(path, boltstore.Options{Relaxed: true})
	} else {
		s, err = redisstore.Open(ctx, url)
	}
	if err != nil {
		return err
	}
	value := make([]byte, recordSize)
	for i := range n {
		c := store.Change{Kind: store.Session, TTL: 24 * time.Hour, Value: value}
		if err := s.Commit(ctx, store.Name(fmt.Sprint("filled ", i)), c); err != nil {
			return err
		}
	}
	return s.Close()
}
