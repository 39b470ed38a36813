// Command stage plays the server and the clients of the tests of the live view: one
// client for each reason why a call hangs, and as many idle ones as wanted.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

func main() {
	bridge := flag.String("bridge", "", "the `URL` of the bridge's endpoint; empty: play the server")
	idle := flag.Int("idle", 0, "open this many sessions that do nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bridge, *idle); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

// run plays until ctx ends.
func run(ctx context.Context, bridge string, idle int) error {
	if bridge != "" {
		if err := play(bridge, idle); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "ready")
		<-ctx.Done()
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "http://%s/mcp\n", listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
