package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/browser"
	"github.com/mcpbridge/bridge/internal/demo"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/mcp"
)

func newDemo(env surroundings) *cobra.Command {
	var once bool
	var client, show string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the bridge at work, with a server and a client built in",
		Long: `demo starts a modern server, the bridge in front of it, and a legacy client that
calls a tool which asks questions. On a terminal you answer them; otherwise the
demo does. Meanwhile your browser shows both hops live. Then it stays up for clients of
yours until Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(mcp.Legacy[:], mcp.Version(client)) {
				return fmt.Errorf("--client: %q is no revision of old clients; use one of %v", client, mcp.Legacy)
			}
			person := isTerminal(env.in) && isTerminal(env.out)
			return demo.Run(cmd.Context(), demo.Options{
				In: env.in, Out: env.out,
				Interactive: person,
				Color:       colourful(env.out, env.environ),
				Width:       func() int { return columns(env.out) },
				Once:        once,
				Client:      client,
				Open:        opener(show, person, env.environ),
				Start: func(ctx context.Context, upstream string, observe func(http.Handler) http.Handler) (demo.Bridge, error) {
					return startForDemo(ctx, upstream, !demo.Asks(client), person, env.environ, observe)
				},
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", string(mcp.V20251125), "The revision that the old client speaks")
	cmd.Flags().StringVar(&show, "browser", "auto", "Where to show the live view: auto is the browser of the person at the terminal, off none, else a command that gets the address")
	cmd.Flags().BoolVar(&once, "once", false, "End after the call instead of staying up")
	return cmd
}

// opener shows pages as the flag --browser says; nil: nobody sees them. The address of the
// demo's view holds a token, which others at this machine may read in the list of processes:
// it opens a bridge that has nothing to hide, and lets nobody do anything.
func opener(show string, person bool, environ []string) func(page string) error {
	switch {
	case show == "off", show == "auto" && (!person || !browser.Seen(environ)):
		return nil
	case show == "auto":
		return func(page string) error { return browser.Open(nil, page) }
	}
	return func(page string) error { return browser.Open(browserCommand(show), page) }
}

// columns returns the width of a terminal, and of anything else 100.
func columns(stream any) int {
	if file, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 100
}

// startForDemo starts a bridge with the default settings on a free port, and its admin
// listener on another. With page it asks people for clients that cannot be asked, in
// their browser where there is a person.
func startForDemo(ctx context.Context, upstream string, page, person bool, environ []string, observe func(http.Handler) http.Handler) (demo.Bridge, error) {
	cfg := config.Default()
	cfg.Upstream, cfg.Listen, cfg.Admin.Listen, cfg.Admin.Payloads = upstream, "127.0.0.1:0", "127.0.0.1:0", "on"
	if page {
		cfg.Questions.Policy, cfg.Questions.Wait = "page", 2*time.Second // a demo is impatient
	}
	log := zerolog.Nop()
	admin, err := newAdministration(ctx, &cfg, nil, log)
	if err != nil {
		return demo.Bridge{}, err
	}
	pages := newDesks(person, environ, log)
	mounts, err := fleet.Open(specs(&cfg, common{admin: admin, pages: pages}, log), fleetOptions(&cfg, new(keeping), log))
	if err != nil {
		pages.stop()
		admin.stop()
		return demo.Bridge{}, err
	}
	door, err := edge.Open(ctx, observe(mounts), edge.Options{Listen: cfg.Listen, Log: log})
	if err != nil {
		mounts.Close()
		pages.stop()
		admin.stop()
		return demo.Bridge{}, err
	}
	mounts.Watch()
	admin.serve(mounts, nil, new(keeping))
	done := make(chan struct{})
	go func() { defer close(done); _ = door.Serve() }()
	stop := func() {
		mounts.Close()
		door.Shutdown(context.Background())
		admin.stop()
		<-done
		pages.stop()
	}
	return demo.Bridge{URL: urls(&cfg, door.Addr())[0], View: admin.address, Stop: stop}, nil
}
