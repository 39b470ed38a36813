package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sessions/boltstore"
	"github.com/mcpbridge/bridge/sessions/store"
)

func newSessions(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions and the waiting calls in a store, and end some",
		Long: `sessions lists what the store of a configuration keeps: each session, and under it the
calls that wait for their client. It shows neither ids of sessions, which are credentials, nor what
anybody said. With Redis it works while bridges run. A store in a file is one process's: while a
bridge runs, --admin asks that.`,
		Example: "  bridge sessions --config bridge.yaml\n  bridge sessions --admin 127.0.0.1:8081 --token-file token\n  bridge sessions --store.url redis://redis.internal --store.keys keys\n  bridge sessions end NAME --config bridge.yaml",
		Args:    noArgs,
	}
	settings := addSettings(cmd, env.environ, func(key string) bool { return key == "store.url" || key == "store.keys" })
	settings.addConfigFile(cmd)
	look := addLooking(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if look.admin != "" {
			running, err := look.listener()
			if err != nil {
				return err
			}
			return running.stored(cmd.Context(), env.out)
		}
		s, err := settings.openStored(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		return listStored(cmd.Context(), s, env.out)
	}
	cmd.AddCommand(newSessionsEnd(env))
	return cmd
}

func newSessionsEnd(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "end NAME…",
		Short: "End sessions with their calls: their clients get 404 and begin new ones",
		Args:  cobra.MinimumNArgs(1),
	}
	settings := addSettings(cmd, env.environ, func(key string) bool { return key == "store.url" || key == "store.keys" })
	settings.addConfigFile(cmd)
	look := addLooking(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if look.admin != "" {
			running, err := look.listener()
			if err != nil {
				return err
			}
			return running.endStored(cmd.Context(), args, env.out)
		}
		s, err := settings.openStored(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		return endStored(cmd.Context(), s, args, func(string) {}, env.out)
	}
	return cmd
}

// openStored opens the store that settings name. Nothing is made: neither a store nor its key.
func (s *settingFlags) openStored(ctx context.Context) (store.Store, error) {
	settings, err := s.storeSettings()
	if err != nil {
		return nil, err
	}
	if kind, path := settings.Kind(); kind == "file" {
		for _, needed := range []string{path, keysOf(settings, path)} {
			if _, err := os.Stat(needed); err != nil {
				return nil, fmt.Errorf("store.url: %w", err)
			}
		}
	}
	opened, _, err := openStore(ctx, settings)
	switch {
	case errors.Is(err, boltstore.ErrInUse):
		return nil, fmt.Errorf("%w: ask it with --admin, or stop it first", err)
	case err == nil && opened == nil:
		return nil, usageError{errors.New("sessions in memory: are nowhere else; name a store with --store.url or a file with --config")}
	}
	return opened, err
}

func keysOf(settings config.Store, path string) string {
	if settings.Keys != "" {
		return settings.Keys
	}
	return path + ".keys"
}

// storeSettings are those of a configuration of which only the store matters.
func (s *settingFlags) storeSettings() (config.Store, error) {
	sources := config.Sources{File: s.file, Environ: s.environ, Flags: s.settings, Partly: true}
	if s.file == "" { // it has no server
		sources.Flags = append([]config.Setting{{Key: "upstream", Values: []string{"http://127.0.0.1:1"}}}, sources.Flags...)
	}
	cfg, err := reading(func() (config.Config, error) { return config.Load(sources) })
	return cfg.Store, err
}

// listBatch is how many records are asked for at once.
const listBatch = 500

// listStored writes a line for each session, and one for each of its calls.
func listStored(ctx context.Context, s store.Store, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer func() { _ = table.Flush() }()
	fmt.Fprintln(table, "SESSION\tVERSION\tBEGAN\tEXPIRES IN\tWAITING CALLS")
	sessions, calls, unreadable := 0, 0, 0
	err := eachStored(ctx, s, func(one *legacy.StoredSession) {
		sessions++
		calls += len(one.Calls)
		unreadable += one.Unreadable
		began := "?"
		if !one.Began.IsZero() {
			began = one.Began.UTC().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", one.Name, versionOf(one), began, one.TTL.Round(time.Second), len(one.Calls))
		for i := range one.Calls {
			fmt.Fprintf(table, "  %s\n", describe(&one.Calls[i]))
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(table, "%s, %s", observe.Plural(sessions, "session"), observe.Plural(calls, "waiting call"))
	if unreadable > 0 {
		fmt.Fprintf(table, ", %s that these keys do not open or that a newer bridge wrote", observe.Plural(unreadable, "record"))
	}
	fmt.Fprintln(table)
	return nil
}

// versionOf is the revision of a session; of one that a server has only that server knows it.
func versionOf(s *legacy.StoredSession) string {
	if s.Relayed {
		return "relayed"
	}
	return orUnknown(string(s.Version))
}

func orUnknown(text string) string {
	if text == "" {
		return "?"
	}
	return text
}

// describe says of a call what it is and how long it waits, and nothing that anybody said.
func describe(c *legacy.StoredCall) string {
	flow, err := mrtr.Decode(c.Flow)
	if err != nil {
		return "a call that cannot be read"
	}
	name, _ := rawjson.Text(downstream.NameIn(flow.Method, flow.Params))
	if name == "" {
		name = flow.Method
	}
	return fmt.Sprintf("%q waits since %s, %d open, until %s", name, flow.Clock.Began.UTC().Format(time.DateTime), c.Questions, flow.Clock.Deadline.UTC().Format(time.DateTime))
}

// eachStored calls use for each session of a store.
func eachStored(ctx context.Context, s store.Store, use func(*legacy.StoredSession)) error {
	for after, more := "", true; more; {
		page, err := s.List(ctx, after, listBatch)
		if err != nil {
			return err
		}
		last := ""
		for i := range page.Records {
			at := page.Records[i].Address
			if at.Session == last || at.Kind == store.Lease || at.Kind == store.Due || at.Kind == store.Refused {
				continue
			}
			last = at.Session
			records, err := s.Load(ctx, at.Session)
			if err != nil {
				return err
			}
			if one, ok := legacy.ReadStored(at.Session, records); ok {
				use(&one)
			}
		}
		after, more = page.Next, page.Next != ""
	}
	return nil
}

// endStored ends sessions by their names in the store, after what is to be done before.
func endStored(ctx context.Context, s store.Store, names []string, before func(name string), out io.Writer) error {
	var failed []error
	for _, name := range names {
		records, err := s.Load(ctx, name)
		_, ok := legacy.ReadStored(name, records)
		switch {
		case err != nil:
			failed = append(failed, err)
			continue
		case !ok:
			failed = append(failed, fmt.Errorf("there is no session %q; `bridge sessions` lists them", name))
			continue
		}
		before(name)
		if err := s.End(ctx, name); err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(out, "ended %s\n", name)
	}
	return errors.Join(failed...)
}
