// Command compare runs the bridge, a tuned httputil.ReverseProxy and no proxy
// at all under the same legacy traffic, one after the other over several
// rounds, and prints how they stand to each other.
//
//	go run ./bench/compare                    everything but the plots
//	go run ./bench/compare -smoke             a short run that only checks for errors
//	go run ./bench/compare -modes hold -n 9000
//	go run ./bench/compare -modes plots -plots docs/performance
//	go run ./bench/compare -- --limits.flows 64   with more flags for the bridge
//
// Every system under test is a process of its own. The program starts itself
// again in the roles of the servers and of the proxy, and starts the bridge
// from cmd/bridge.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

// options are the command's flags.
type options struct {
	modes   []string
	kinds   []load.Kind
	clients int
	rounds  int
	window  time.Duration
	rate    int
	n       int
	streams int
	tools   int
	plots   string
	bridge  string
	smoke   bool
	json    bool
	open    bool
	cpu     string   // directory of CPU profiles, or none
	flags   []string // more flags for the bridge
	tls     hops
	beside  []variant
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "role" {
		exit(runRole(os.Args[2:]))
	}
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// The generator shares the machine with the process under test: spend
	// memory instead of CPU time on garbage collection here.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, o, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// modes in the order they run.
var modes = []string{"closed", "rate", "allocs", "idle", "hold", "plots"}

func parse(args []string) (*options, error) {
	o := &options{}
	var kinds, which string
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.StringVar(&which, "modes", "closed,rate,allocs,idle,hold", "what to measure, of "+strings.Join(modes, ","))
	f.StringVar(&kinds, "kinds", "", "kinds of closed-loop traffic (default all)")
	f.IntVar(&o.clients, "clients", 16, "clients of the closed loop")
	f.IntVar(&o.rounds, "rounds", 5, "rounds; each measures every system once")
	f.DurationVar(&o.window, "window", 2*time.Second, "length of one measurement")
	f.IntVar(&o.rate, "rate", 1000, "calls per second of the fixed-rate mode")
	f.IntVar(&o.n, "n", 0, "suspended calls of the hold mode (default: what the descriptor limit allows, at most 20000)")
	f.IntVar(&o.streams, "streams", 5000, "sessions and open streams of the idle mode")
	f.IntVar(&o.tools, "tools", 20, "tools that the servers offer")
	f.StringVar(&o.plots, "plots", ".", "directory that the plots mode writes its pictures to")
	f.StringVar(&o.bridge, "bridge", "", "bridge program to measure (default: build ./cmd/bridge)")
	f.BoolVar(&o.smoke, "smoke", false, "short run of every mode that fails on errors only")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.BoolVar(&o.open, "profile", false, "measure the bridge with a control endpoint, and print where its profiles are")
	f.StringVar(&o.cpu, "cpuprofile", "", "directory for a CPU profile of the bridge in each window of the closed loop; implies -profile")
	f.Func("tls", "hops that are encrypted: downstream, upstream or both", o.tls.set)
	f.Func("beside", "another bridge to measure in the closed loop, as NAME[@PROGRAM]=FLAGS; may be repeated", o.addBeside)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.open = o.open || o.cpu != ""
	o.flags = f.Args()
	o.modes = strings.Split(which, ",")
	for _, m := range o.modes {
		if !slices.Contains(modes, m) {
			return nil, fmt.Errorf("compare: unknown mode %q", m)
		}
	}
	o.kinds = load.Kinds
	if kinds != "" {
		o.kinds = nil
		for k := range strings.SplitSeq(kinds, ",") {
			if !slices.Contains(load.Kinds, load.Kind(k)) {
				return nil, fmt.Errorf("compare: unknown kind of traffic %q", k)
			}
			o.kinds = append(o.kinds, load.Kind(k))
		}
	}
	if o.smoke {
		o.modes = modes
		o.plots = os.TempDir()
		o.rounds, o.window, o.n, o.streams = 1, 300*time.Millisecond, 300, 300
	}
	return o, nil
}

// comparison is one run.
type comparison struct {
	*options
	ctx    context.Context
	fleet  *fleet
	report *report.Report
	out    io.Writer // progress
	// listens is how many listen streams stood at the modern server while the
	// bridge's standalone streams were open.
	listens int64
}

func run(ctx context.Context, o *options, w io.Writer) error {
	c := &comparison{options: o, ctx: ctx, out: os.Stderr,
		report: &report.Report{Go: runtime.Version(), CPUs: runtime.NumCPU(), When: time.Now().UTC()}}
	var err error
	if c.fleet, err = newFleet(o); err != nil {
		return err
	}
	defer c.fleet.stop()
	if o.open {
		c.progress("profiles of the bridge: go tool pprof 'http://%s/profile/cpu?seconds=5'", c.fleet.systems[2].under.Control)
	}
	for _, mode := range modes {
		if !slices.Contains(o.modes, mode) || ctx.Err() != nil {
			continue
		}
		if err := c.measure(mode); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		c.checkFleet(mode)
	}
	c.report.Noise = report.NoiseOf(c.report.Samples, c.report.Rates)
	return c.finish(w)
}

func (c *comparison) measure(mode string) error {
	switch mode {
	case "closed":
		return c.closed()
	case "rate":
		return c.fixedRate()
	case "allocs":
		return c.allocs()
	case "idle":
		return c.idle()
	case "hold":
		return c.hold()
	}
	return c.plot()
}

// finish prints the report; errors of the bridge fail the run.
func (c *comparison) finish(w io.Writer) error {
	var err error
	if c.smoke && !c.json {
		_, err = fmt.Fprintf(w, "smoke run: %d samples, %d figures, %d kinds of errors\n", len(c.report.Samples), len(c.report.Figures), len(c.report.Errors))
	} else if c.json {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		err = e.Encode(c.report)
	} else {
		err = c.report.Write(w)
	}
	if err == nil && len(c.report.Errors) > 0 {
		err = fmt.Errorf("%d kinds of errors, the first: %s", len(c.report.Errors), c.report.Errors[0])
	}
	if err == nil && c.ctx.Err() != nil {
		err = c.ctx.Err()
	}
	return err
}

func (c *comparison) progress(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

// fail records what went wrong with a system that must not fail.
func (c *comparison) fail(what string, errs *load.Errors) {
	if n := errs.Count(); n > 0 {
		c.report.Errors = append(c.report.Errors, fmt.Sprintf("%s: %d errors, the first: %v", what, n, errs.First()))
	}
}
