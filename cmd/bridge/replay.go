package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/replay"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// replaying is what `bridge replay` was asked to do.
type replaying struct {
	against string
	serve   string
	mount   string
	headers []string
}

func newReplay(env surroundings) *cobra.Command {
	var opt replaying
	cmd := &cobra.Command{
		Use:   "replay FILE (--against URL | --serve [ADDR])",
		Short: "Ask a server again what a recording asked, or play its server",
		Long: `replay reads a recording that --record or the admin listener made.

With --against it sends the upstream half to a server again, one request after
another, and says where the answers differ; the exit status is 1 if any does.
With --serve it plays the server of the recording to clients of 2026-07-28, such
as a bridge. A recording without payloads holds no values: numbers are played as
0 and texts as their size, and only the structure of answers is compared.`,
		Example: "  bridge replay bug.jsonl --against http://localhost:3000/mcp\n  bridge replay bug.jsonl --serve\n  bridge serve --upstream http://127.0.0.1:8082/mcp",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (opt.against == "") == (opt.serve == "") {
				return usageError{errors.New("say either --against URL or --serve")}
			}
			head, exchanges, err := readRecording(args[0], opt.mount)
			if err != nil {
				return err
			}
			if opt.serve != "" {
				return playServer(cmd.Context(), opt.serve, replay.NewServer(head, exchanges), env)
			}
			return askAgain(cmd.Context(), &opt, head, exchanges, env.out)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.against, "against", "", "The `URL` of a server to ask again")
	flags.StringVar(&opt.serve, "serve", "", "Play the server, on 127.0.0.1:8082 or `ADDR`")
	flags.Lookup("serve").NoOptDefVal = "127.0.0.1:8082"
	flags.StringVar(&opt.mount, "mount", "", "Only what went to the server of the mount at this `PATH`")
	flags.StringArrayVar(&opt.headers, "header", nil, "A header for the server, as `NAME: VALUE`; may be repeated")
	return cmd
}

// oneFile accepts one argument, and an address after --serve, which pflag takes for one.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && cmd.Flags().Changed("serve") {
		return cmd.Flags().Set("serve", args[1])
	}
	if len(args) != 1 {
		return usageError{fmt.Errorf("usage: %s FILE (--against URL | --serve [ADDR])", cmd.CommandPath())}
	}
	return nil
}

func readRecording(name, mount string) (record.Head, []*replay.Exchange, error) {
	onlyReading.Add(1)
	defer onlyReading.Add(-1)
	file, err := os.Open(name)
	if err != nil {
		return record.Head{}, nil, err
	}
	defer file.Close()
	head, lines, err := record.Read(file)
	if err != nil {
		return head, nil, fmt.Errorf("%s: %w", name, err)
	}
	all, err := replay.Exchanges(lines)
	if err != nil {
		return head, nil, fmt.Errorf("%s: %w", name, err)
	}
	var wanted []*replay.Exchange
	for _, x := range all {
		if mount == "" || x.Mount == mount {
			wanted = append(wanted, x)
		}
	}
	if len(wanted) == 0 {
		return head, nil, fmt.Errorf("%s: nothing in it was asked of a server", name)
	}
	return head, wanted, nil
}

// errDiffers says that a server answers otherwise than it was recorded.
var errDiffers = errors.New("the server does not answer as recorded")

// askAgain sends the upstream half and tells out how each answer compares.
func askAgain(ctx context.Context, opt *replaying, head record.Head, exchanges []*replay.Exchange, out io.Writer) error {
	header := http.Header{}
	for _, line := range opt.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return usageError{fmt.Errorf("--header: write NAME: VALUE")}
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	server, err := streamable.New(streamable.Options{URL: opt.against, Header: header, UserAgent: "mcp-bridge/" + versionText(), Log: zerolog.Nop()})
	if err != nil {
		return usageError{fmt.Errorf("--against: %w", err)}
	}
	defer func() { _ = server.Close() }() // it has nothing to report but what its calls did
	count, differ := 0, 0
	err = replay.Against(ctx, server, head, exchanges, func(r replay.Result) {
		count++
		if len(r.Differences) == 0 {
			fmt.Fprintf(out, "same     %s, %s\n", clip.Printable(r.Name), r.Took.Round(time.Millisecond))
			return
		}
		differ++
		fmt.Fprintf(out, "DIFFERS  %s, %s\n", clip.Printable(r.Name), r.Took.Round(time.Millisecond))
		for _, d := range r.Differences {
			fmt.Fprintf(out, "         %s\n", clip.Printable(d))
		}
	})
	fmt.Fprintf(out, "%d of %s as recorded%s\n", count-differ, observe.Plural(count, "answer is", "answers are"), compared(head))
	if err == nil && differ > 0 {
		err = errDiffers
	}
	return err
}

func compared(head record.Head) string {
	if head.Payloads {
		return ""
	}
	return ", as far as their structure goes: values were not recorded"
}

// ownPages keeps foreign web pages from what a listener serves, as from every other one: by their origin, and
// on loopback by the host that they name.
func ownPages(next http.Handler, at net.Addr) http.Handler {
	hosts := []string{"*"} // by whatever name others reach this machine
	if ip, ok := at.(*net.TCPAddr); ok && ip.IP.IsLoopback() {
		hosts = nil
	}
	guard := web.NewGuard(hosts, nil, nil, zerolog.Nop())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if guard.Admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// playServer serves until ctx ends.
func playServer(ctx context.Context, address string, handler http.Handler, env surroundings) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.out, "playing the server at http://%s/mcp\n", listener.Addr())
	if env.started != nil {
		env.started(listener.Addr().String())
	}
	server := &http.Server{Handler: ownPages(handler, listener.Addr()), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
