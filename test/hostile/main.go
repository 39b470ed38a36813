// Command hostile is a suite of hostile peers on both hops: it sends raw bytes to everything
// that reads what a peer wrote, and compares with other implementations what comes of them.
// It runs the fuzz targets below, in turn, until so many messages were tried, and counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// target is a fuzz target of a package.
type target struct{ pkg, name, what string }

// targets are those that read a peer's bytes.
var targets = []target{
	{"legacy/h1", "FuzzConnection", "bytes of a client on a connection, beside net/http"},
	{"legacy/h1", "FuzzHead", "the head of a client's request, beside net/http"},
	{"upstream/h1", "FuzzResponse", "bytes of a server, beside net/http"},
	{"upstream/stdio", "FuzzPipeInput", "lines of a command"},
	{"upstream/mirror", "FuzzHeaderValues", "values of headers, there and back"},
	{"upstream/mirror", "FuzzSchema", "schemas of tools"},
	{"sse", "FuzzDecode", "event streams, beside a plain reading of the standard"},
	{"rawjson", "FuzzValidate", "JSON, beside jsontext and encoding/json"},
	{"rawjson", "FuzzAccess", "members of JSON, beside encoding/json"},
	{"rawjson", "FuzzApply", "edits of JSON"},
	{"jsonrpc", "FuzzParse", "envelopes"},
	{"internal/transport", "FuzzLines", "lines of a client"},
	{"internal/edge", "FuzzPROXYHeader", "PROXY headers"},
	{"translate", "FuzzResult", "results of a server"},
	{"translate", "FuzzParams", "params of a client"},
	{"translate", "FuzzInput", "questions of a server"},
}

func main() {
	messages := flag.Int("messages", 100_000, "how many messages to try, over all targets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	each := max(*messages/len(targets), 1)
	failed := 0
	for _, t := range targets {
		began := time.Now()
		out, err := t.run(ctx, each)
		verdict := "ok"
		if err != nil {
			verdict = "FAILED"
			failed++
			fmt.Fprintf(os.Stderr, "%s\n", out)
		}
		fmt.Fprintf(os.Stdout, "%9d  %-6s %5.0f s  %s.%s: %s\n", each, verdict, time.Since(began).Seconds(), t.pkg, t.name, t.what)
	}
	fmt.Fprintf(os.Stdout, "%d messages, %d of %d targets failed\n", each*len(targets), failed, len(targets))
	if failed > 0 {
		os.Exit(1)
	}
}

// run has the go command try so many inputs.
func (t *target) run(ctx context.Context, inputs int) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", fmt.Sprintf("%dx", inputs),
		"-fuzzminimizetime", "1000x", "./"+t.pkg)
	return cmd.CombinedOutput()
}
