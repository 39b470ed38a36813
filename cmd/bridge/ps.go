package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/observe/terminal"
	"github.com/mcpbridge/bridge/observe/view"
)

// addLooking gives a command the flags that say which bridges to look at.
func addLooking(cmd *cobra.Command) *looking {
	l := &looking{}
	cmd.Flags().StringVar(&l.admin, "admin", "", "The admin listener of a bridge: HOST:PORT, unix:PATH, or the `ADDRESS` that it printed")
	cmd.Flags().StringVar(&l.tokenFile, "token-file", "", "The `FILE` with that listener's token (admin.token-file)")
	return l
}

func newPs(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "Show what waits in running bridges, for whom, how long and why",
		Long: `ps shows what every "bridge stdio" of this user does, that is the bridges of desktop
clients; it needs no configuration. With --admin it shows a "bridge serve".`,
		Example: "  bridge ps\n  bridge ps --admin 127.0.0.1:8081 --token-file token",
		Args:    noArgs,
	}
	look := addLooking(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := look.lookers(cmd.Context(), env.environ)
		if err != nil {
			return err
		}
		screen := terminal.Screen{Out: env.out, Width: columns(env.out), Color: colourful(env.out, env.environ)}
		var failed []error
		for _, l := range all {
			state, err := l.state(cmd.Context())
			if err != nil {
				failed = append(failed, err)
				continue
			}
			screen.State(l.name, &state)
		}
		return errors.Join(failed...)
	}
	return cmd
}

func newWatch(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch [SESSION]",
		Short: "Show the messages of both hops as they pass a running bridge",
		Long: `watch shows the messages between client, bridge and server as they pass, without what
they say, and why a call waits, until Ctrl-C. SESSION is the id that "bridge ps" shows,
or the process id of a "bridge stdio"; without it all sessions of the only bridge are shown.`,
		Args: cobra.MaximumNArgs(1),
	}
	look := addLooking(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		session := ""
		if len(args) == 1 {
			session = args[0]
		}
		all, err := look.lookers(cmd.Context(), env.environ)
		if err != nil {
			return err
		}
		w := &watching{session: session, said: map[string]string{},
			lanes: terminal.Lanes{Screen: terminal.Screen{Out: env.out, Width: columns(env.out), Color: colourful(env.out, env.environ)}}}
		if w.looker, err = choose(all, &w.session); err != nil {
			return err
		}
		return w.run(cmd.Context())
	}
	return cmd
}

// choose returns the bridge that a session names, and forgets the name of one that is
// the bridge's.
func choose(all []*looker, session *string) (*looker, error) {
	for _, l := range all {
		if l.name == "stdio "+*session {
			*session = ""
			return l, nil
		}
	}
	if len(all) > 1 {
		return nil, usageError{fmt.Errorf("%d bridges run; say which by its process id, as `bridge ps` shows it", len(all))}
	}
	return all[0], nil
}

// watching follows one bridge.
type watching struct {
	*looker
	session string // its id; "": all
	lanes   terminal.Lanes
	seq     uint64
	number  uint64            // of the session; 0: all
	said    map[string]string // what was said last of a call
}

// pulse is how often the bridge is asked.
const pulse = 300 * time.Millisecond

// run writes what passes until ctx ends.
func (w *watching) run(ctx context.Context) error {
	state, err := w.state(ctx)
	if err != nil {
		return err
	}
	if err := w.find(&state); err != nil {
		return err
	}
	w.lanes.Head()
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		if err := w.once(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// find learns under which number the messages of the session are.
func (w *watching) find(state *view.State) error {
	if w.session == "" {
		return nil
	}
	for i := range state.Sessions {
		if state.Sessions[i].ID == w.session {
			w.number = state.Sessions[i].Number
			return nil
		}
	}
	return fmt.Errorf("there is no session %q; `bridge ps` lists them", w.session)
}

// once writes what is new.
func (w *watching) once(ctx context.Context) error {
	seen, err := w.events(ctx, w.seq)
	if err != nil {
		return err
	}
	for i := range seen {
		w.seq = seen[i].Seq
		if w.number == 0 || seen[i].Session == w.number {
			w.lanes.Message(&seen[i])
		}
	}
	state, err := w.state(ctx)
	if err != nil {
		return err
	}
	w.note(&state)
	return nil
}

// patient is how long a call waits before something is said of it, in seconds.
const patient = 2

// note says of each call that waits why, once for each reason.
func (w *watching) note(state *view.State) {
	open := map[string]string{}
	for i := range state.Calls {
		c := &state.Calls[i]
		if w.session != "" && c.Session != w.session || c.Waited < patient {
			continue
		}
		key := c.Session + " " + c.ID
		open[key] = fmt.Sprint(c.Who, c.Grave, c.Round)
		if w.said[key] != open[key] {
			name := c.Name
			if name == "" {
				name = c.Method
			}
			w.lanes.Note(name+": "+c.Why, c.Grave)
		}
	}
	w.said = open
}
