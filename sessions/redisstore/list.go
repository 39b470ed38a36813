package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// List implements store.Store: one node of a cluster after the other. Next is the
// number of a node and the cursor in it.
func (s *Store) List(ctx context.Context, after string, limit int) (store.Page, error) {
	if err := s.usable(ctx); err != nil { // a cluster's connections close some time after Close
		return store.Page{}, err
	}
	number, cursor, err := place(after)
	if err != nil {
		return store.Page{}, err
	}
	nodes, err := s.primaries(ctx)
	if err != nil || number >= len(nodes) {
		return store.Page{}, err
	}
	scan := s.client.B().Scan().Cursor(cursor).Match(escape(s.prefix) + "{*}:?").Count(int64(limit)).Build()
	found, err := nodes[number].Do(ctx, scan).AsScanEntry()
	if err != nil {
		return store.Page{}, plain(err)
	}
	page := store.Page{}
	if page.Records, err = s.heads(ctx, s.sessions(found.Elements)); err != nil {
		return store.Page{}, err
	}
	if found.Cursor == 0 {
		number++
	}
	if number < len(nodes) {
		page.Next = fmt.Sprintf("%d-%d", number, found.Cursor)
	}
	return page, nil
}

// place reads what List returned as Next.
func place(after string) (node int, cursor uint64, err error) {
	if after == "" {
		return 0, 0, nil
	}
	a, b, _ := strings.Cut(after, "-")
	if node, err = strconv.Atoi(a); err == nil {
		cursor, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil || node < 0 {
		return 0, 0, fmt.Errorf("%q is no place to go on listing", after)
	}
	return node, cursor, nil
}

// primaries returns the nodes that can be written to, always in the same order.
func (s *Store) primaries(ctx context.Context) ([]rueidis.Client, error) {
	nodes := s.client.Nodes()
	var list []rueidis.Client
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		role, err := nodes[address].Do(ctx, s.client.B().Role().Build()).ToArray()
		if err != nil {
			return nil, plain(err)
		}
		if len(role) == 0 {
			continue
		}
		if name, _ := role[0].ToString(); name == "master" {
			list = append(list, nodes[address])
		}
	}
	return list, nil
}

// sessions returns the sessions that keys are of, each one once: keys of their own records
// and of their indexes.
func (s *Store) sessions(keys []string) []string {
	var list []string
	for _, key := range keys {
		session, found := strings.CutPrefix(key[:max(0, len(key)-len("}:?"))], s.prefix+"{")
		if found && !slices.Contains(list, session) {
			list = append(list, session)
		}
	}
	return list
}

// Glance implements store.Glancer.
func (s *Store) Glance(ctx context.Context, session string) ([]store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return read(ctx, s, session, readCosts, func(ctx context.Context) ([]store.Record, error) {
		return s.heads(ctx, []string{session})
	})
}

// heads returns the records of sessions without values.
func (s *Store) heads(ctx context.Context, sessions []string) ([]store.Record, error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	calls := make([]rueidis.LuaExec, len(sessions))
	for i, session := range sessions {
		calls[i] = rueidis.LuaExec{Keys: []string{s.base(session) + indexName}, Args: []string{"heads"}}
	}
	var list []store.Record
	for i, reply := range loadScript.ExecMulti(ctx, s.client, calls...) {
		parts, err := reply.AsStrSlice()
		if err != nil {
			return nil, plain(err)
		}
		for _, r := range records(sessions[i], parts) {
			r.Value = nil
			list = append(list, r)
		}
	}
	return list, nil
}

// escape makes a pattern that matches text only.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
