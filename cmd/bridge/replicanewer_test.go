package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/sessions/redisstore"
	"github.com/mcpbridge/bridge/sessions/store"
)

// newerBridge stands for a bridge of a newer version beside the trio: it writes records that
// the trio does not know how to read.
type newerBridge struct {
	t      *testing.T
	plain  store.Store
	sealed *store.Sealed
}

func newNewerBridge(f *trio) *newerBridge {
	f.t.Helper()
	plain, err := redisstore.Open(f.t.Context(), "redis://"+f.redis.Addr())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = plain.Close() })
	keys, err := store.ReadKeys(f.on[0].flag("--store.keys"))
	if err != nil {
		f.t.Fatal(err)
	}
	sealed, err := store.NewSealed(plain, keys)
	if err != nil {
		f.t.Fatal(err)
	}
	return &newerBridge{f.t, plain, sealed}
}

// only returns the one record of a kind, with its value.
func (n *newerBridge) only(kind store.Kind) store.Record {
	n.t.Helper()
	page, err := n.sealed.List(n.t.Context(), "", 1000)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, r := range page.Records {
		if r.Kind != kind {
			continue
		}
		list, err := n.sealed.Load(n.t.Context(), r.Session)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, r := range list {
			if r.Kind == kind {
				return r
			}
		}
	}
	n.t.Fatalf("there is no record of kind %c", kind)
	return store.Record{}
}

// next is the version of records of a kind that this bridge cannot read yet.
func (n *newerBridge) next(kind store.Kind) string {
	n.t.Helper()
	var now struct{ V int }
	if err := json.NewDecoder(bytes.NewReader(n.only(kind).Value)).Decode(&now); err != nil || now.V == 0 {
		n.t.Fatal(err, now)
	}
	return strconv.Itoa(now.V + 1)
}

// gives the only record of a kind a member, and returns it as it is then.
func (n *newerBridge) gives(kind store.Kind, member, value string) store.Record {
	n.t.Helper()
	r := n.only(kind)
	var of map[string]json.RawMessage
	line := json.NewDecoder(bytes.NewReader(r.Value))
	if err := line.Decode(&of); err != nil {
		n.t.Fatal(err)
	}
	of[member] = json.RawMessage(value)
	text, err := json.Marshal(of)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.write(n.sealed, r, append(text, r.Value[line.InputOffset():]...)) // what is long stands behind the JSON
}

func (n *newerBridge) write(s store.Store, r store.Record, text []byte) store.Record {
	n.t.Helper()
	c := store.Change{Kind: r.Kind, ID: r.ID, Replaces: r.Version, TTL: time.Hour, Value: text}
	if err := s.Commit(n.t.Context(), r.Session, c); err != nil {
		n.t.Fatal(err)
	}
	return n.only(r.Kind)
}

func (n *newerBridge) wantUntouched(r store.Record) {
	n.t.Helper()
	if now := n.only(r.Kind); now.Version != r.Version || !bytes.Equal(now.Value, r.Value) {
		n.t.Errorf("the record of kind %c has version %d, and had %d", r.Kind, now.Version, r.Version)
	}
}

// TestMembersOfANewerBridgeAreNoObstacle: what is added without a new format is passed over.
func TestMembersOfANewerBridgeAreNoObstacle(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	stream, id := f.ask(0)
	f.on[0].kill()
	n := newNewerBridge(f)
	n.gives(store.Session, "future", `{"a":[1]}`)
	n.gives(store.Flow, "future", `"x"`)
	f.on[1].answer(id)
	wantDone(t, f.on[2].resume(stream.last).message())
	wantRounds(t, f.asker, 1)
}

// TestCallsOfANewerBridgeAreLeftAlone: nobody goes on with one, and its session serves others.
func TestCallsOfANewerBridgeAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := newTrio(t)
	f.open()
	_, id := f.ask(0)
	f.on[0].kill()
	n := newNewerBridge(f)
	newer := n.gives(store.Flow, "v", n.next(store.Flow))
	for _, on := range []int{1, 2} {
		f.on[on].status(http.MethodPost, `{"jsonrpc":"2.0","id":"`+id+`","result":{"action":"accept","content":{"name":"Ada"}}}`)
		f.wantStatus(on, http.MethodPost, listTools, http.StatusOK)
	}
	n.wantUntouched(newer)
	if rounds, _ := f.asker.seen(); rounds != 0 {
		t.Errorf("it went on with %d rounds", rounds)
	}
	stream, id := f.ask(1)
	f.on[2].answer(id)
	wantDone(t, stream.message())
}

// TestSessionsOfANewerBridgeAreLeftAlone, be it their record that is newer or its seal. Others begin.
func TestSessionsOfANewerBridgeAreLeftAlone(t *testing.T) {
	for name, write := range map[string]func(*newerBridge) store.Record{
		"its record": func(n *newerBridge) store.Record { return n.gives(store.Session, "v", n.next(store.Session)) },
		"its seal": func(n *newerBridge) store.Record {
			return n.write(n.plain, n.only(store.Session), []byte{200, 0, 0, 0, 0, 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTrio(t)
			f.open()
			f.on[0].kill()
			n := newNewerBridge(f)
			newer := write(n)
			for _, on := range []int{1, 2} {
				f.wantStatus(on, http.MethodPost, listTools, http.StatusNotFound)
			}
			n.wantUntouched(newer)
			f.on[1].session = ""
			f.on[1].session = f.on[1].request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
			f.wantStatus(1, http.MethodPost, listTools, http.StatusOK)
		})
	}
}
