package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/modernonly"
	"github.com/mcpbridge/bridge/internal/wirelog"
)

// legacyVersion is what the demo's client speaks, unless it is told otherwise.
const legacyVersion = "2025-11-25"

// Asks reports whether clients of a revision can be asked anything.
func Asks(version string) bool { return version >= "2025-06-18" }

// Run shows the demo and returns when ctx ends or, with Once, after the
// summary. Ending it by ctx is no error.
func Run(ctx context.Context, opts Options) error {
	d := newDemo(opts)
	defer context.AfterFunc(ctx, d.screen.mute)()
	err := d.run(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	if ctx.Err() != nil {
		d.screen.print("\n Stopped.\n")
	}
	return err
}

type demo struct {
	opts   Options
	screen *screen
	wire   *wirelog.Recorder
	lines  <-chan string
}

func newDemo(opts Options) *demo {
	opts.Client = cmp.Or(opts.Client, legacyVersion)
	d := &demo{opts: opts, screen: &screen{out: opts.Out, color: opts.Color, width: opts.Width, start: time.Now()}}
	described := &describer{methods: map[int]string{}}
	d.wire = &wirelog.Recorder{Limit: 1000, Notify: func(e wirelog.Entry) {
		if l, ok := described.describe(e); ok {
			d.screen.show(l)
		}
	}}
	return d
}

func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, stopServer, err := serve(d.wire.Handler(wirelog.Upstream, newFlights()))
	if err != nil {
		return err
	}
	defer stopServer()
	d.intro()
	bridge, err := d.opts.Start(ctx, server, func(h http.Handler) http.Handler {
		return d.wire.Handler(wirelog.Downstream, h)
	})
	if err != nil {
		return fmt.Errorf("start the bridge: %w", err)
	}
	defer bridge.Stop()
	if !d.opts.Once {
		d.watch(bridge.View)
	}
	if err := d.book(ctx, bridge.URL); err != nil {
		return err
	}
	d.screen.summarize(d.wire.Entries(), Asks(d.opts.Client), d.opts.Interactive)
	if d.opts.Once {
		return nil
	}
	d.screen.invite(bridge.URL, server)
	d.screen.point(bridge.View)
	<-ctx.Done()
	return ctx.Err()
}

// watch shows the bridge's view in a browser, or says where it is.
func (d *demo) watch(view string) {
	if view != "" && d.opts.Open != nil && d.opts.Open(view) == nil {
		d.screen.say(bold, " ", "Your browser was asked to show both hops, too: "+view)
		d.screen.print("\n")
		return
	}
	d.screen.point(view)
}

func (d *demo) intro() {
	d.screen.print("\n")
	d.screen.say(bold, " ", "MCP Bridge demo: an old client books a flight on a server it cannot talk to")
	d.screen.print("\n")
	d.screen.say(plain, "  · ", d.client())
	d.screen.say(plain, "  · ", fmt.Sprintf("The server speaks %s only. To ask, it has to end the call and be called again (MRTR). "+
		"It runs as %d replicas that remember nothing.", modernonly.Version, replicas))
	d.screen.say(plain, "  · ", "The bridge stands between them. Time runs down, arrows point to the receiver:")
	d.screen.print("\n")
	d.screen.heading(
		[2]string{"old client ⇄ bridge", d.opts.Client + ", one session"},
		[2]string{"bridge ⇄ MRTR-only server", fmt.Sprintf("%s, %d replicas", modernonly.Version, replicas)})
}

func (d *demo) client() string {
	if Asks(d.opts.Client) {
		return "The old client speaks MCP " + d.opts.Client + ". A server may ask it questions while a call is running."
	}
	return "The old client speaks MCP " + d.opts.Client + ", which knows no questions. People are asked on a page of the bridge."
}

// book connects the old client and calls the tool.
func (d *demo) book(ctx context.Context, url string) error {
	if d.opts.Interactive {
		d.lines = readLines(ctx, d.opts.In)
	}
	options := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if Asks(d.opts.Client) {
		options.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			// The SDK's context outlives the call, and Close would wait for
			// the person: the demo's own ends the question.
			return d.elicit(ctx, req)
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "old-client", Version: "1.0.0"}, options)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: d.opts.Client})
	if err != nil {
		return fmt.Errorf("connect the old client: %w", err)
	}
	err = d.call(ctx, session)
	if closed := session.Close(); err == nil && closed != nil {
		return fmt.Errorf("close the session: %w", closed)
	}
	if err != nil {
		return fmt.Errorf("call %s: %w", tool, err)
	}
	return nil
}

// call calls the tool until it is done: as a model would, it shows its person the page
// that the result names, and calls again.
func (d *demo) call(ctx context.Context, session *mcp.ClientSession) error {
	shown := ""
	for {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"passenger": "Ada Lovelace"}})
		if err != nil || !result.IsError {
			return err
		}
		link := pageIn(result)
		if link == "" {
			return nil
		}
		if link == shown {
			continue // the person has not answered yet
		}
		if shown = link; d.opts.Interactive {
			d.screen.print("\n")
			d.screen.say(green, "   ", "Open this in your browser and answer: "+link)
			d.screen.print("\n")
		} else if err := fillIn(ctx, link); err != nil {
			return fmt.Errorf("answer on the page: %w", err)
		}
	}
}

func (d *demo) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if !d.opts.Interactive {
		return answer(d.screen, req.Params)
	}
	p := &prompter{screen: d.screen, lines: d.lines}
	return p.ask(ctx, req.Params)
}
