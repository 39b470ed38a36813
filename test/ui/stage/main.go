// Command stage plays the server and the clients of the tests of the live view: one
// client for each reason why a call hangs, and as many idle ones as wanted.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
)

func main() {
	bridge := flag.String("bridge", "", "the `URL` of the bridge's endpoint; empty: play the server")
	idle := flag.Int("idle", 0, "open this many sessions that do nothing")
	flag.Parse()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	if *bridge == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("http://%s/mcp\n", listener.Addr())
		go func() { log.Fatal(http.Serve(listener, http.HandlerFunc(serve))) }() //nolint:gosec // it serves one test
		<-stop
		return
	}
	if err := play(*bridge, *idle); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	<-stop
}
