package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// sendGroup sends a group's changes and notes how each one went.
func (s *Store) sendGroup(ctx context.Context, g *group) {
	commands, replaced := s.created(g)
	news := len(commands)
	parts := slices.Collect(slices.Chunk(replaced, int(s.perScript.Load())))
	for _, part := range parts {
		keys, args := scriptOf(part)
		commands = append(commands, s.client.B().Evalsha().Sha1(replaceSHA).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	for _, c := range g.changes {
		if c.at.Kind == store.Session {
			commands = append(commands, s.heard(c.key))
		}
	}
	replies := s.client.DoMulti(ctx, commands...)
	noteCreated(g.changes, replies[:news])
	for i, part := range parts {
		s.noteReplaced(ctx, part, &replies[news+i])
	}
}

// created returns the commands for a group's new records, two for each, and the changes
// that take a script.
func (s *Store) created(g *group) (commands rueidis.Commands, others []*single) {
	commands = make(rueidis.Commands, 0, 2*len(g.changes)+1)
	for _, c := range g.changes {
		if c.head != "" {
			others = append(others, c)
			continue
		}
		if c.index != "" {
			commands = append(commands, s.client.B().Sadd().Key(c.index).Member(c.member).Build())
		}
		commands = append(commands, s.client.B().Set().Key(c.key).Value(c.value).Nx().PxMilliseconds(c.ttl).Build())
	}
	return commands, others
}

// noteCreated notes how new records went: after their names into the index.
func noteCreated(changes []*single, replies []rueidis.RedisResult) {
	for _, c := range changes {
		if c.head != "" {
			continue
		}
		if c.index != "" {
			c.err, replies = plain(replies[0].Error()), replies[1:]
		}
		if c.err == nil {
			if c.err = plain(replies[0].Error()); rueidis.IsRedisNil(c.err) {
				c.conflict()
			}
		}
		replies = replies[1:]
	}
}

// scriptOf returns what replaceText is called with.
func scriptOf(changes []*single) (keys, args []string) {
	keys, args = make([]string, 0, len(changes)), make([]string, 0, 4*len(changes))
	for _, c := range changes {
		keys = append(keys, c.key)
		args = append(args, c.head, strconv.Itoa(len(c.head)-1), c.value, strconv.FormatInt(c.ttl, 10))
	}
	return keys, args
}

// noteReplaced notes how those went that a script replaced. A server that was started anew
// is told the script. One that does not take keys of several sessions in one script,
// though it is no cluster to its clients, gets a script for each from now on.
func (s *Store) noteReplaced(ctx context.Context, changes []*single, reply *rueidis.RedisResult) {
	failed, err := reply.AsIntSlice()
	said, ok := rueidis.IsRedisErr(err)
	switch {
	case ok && said.IsNoScript():
		failed, err = s.eval(ctx, changes).AsIntSlice()
	case ok && len(changes) > 1 && strings.HasPrefix(said.Error(), "CROSSSLOT"):
		s.perScript.Store(1)
		for one := range slices.Chunk(changes, 1) {
			alone := s.eval(ctx, one)
			s.noteReplaced(ctx, one, &alone)
		}
		return
	}
	for _, c := range changes {
		c.err = plain(err)
	}
	for _, number := range failed {
		if number < 1 || number > int64(len(changes)) { // of which nobody knows what came
			for _, c := range changes {
				c.err = garbled("a number of no change")
			}
			return
		}
		changes[number-1].conflict()
	}
}

func (s *Store) eval(ctx context.Context, changes []*single) rueidis.RedisResult {
	keys, args := scriptOf(changes)
	return s.client.DoMulti(ctx,
		s.client.B().Eval().Script(replaceText).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build(), s.heard(keys[0]))[0]
}

// heard returns a command whose reply, whatever it is, comes behind the server's word on this process's copy of a record that
// it has just changed itself: that comes behind the reply to the change, and until then the copy would be read.
func (s *Store) heard(key string) rueidis.Completed { return s.client.B().Exists().Key(key).Build() }
