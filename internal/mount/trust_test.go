package mount

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/vouch"
	"github.com/mcpbridge/bridge/sessions/store"
)

// toolsOnly is a server that judges its tools only, and gives one of them to anybody.
func toolsOnly(t *testing.T) Options {
	t.Helper()
	return judging(t, publicEcho, discovers, listsTools)
}

// judgedStore says when it has kept what a server has refused, and can be away for those who ask for that.
type judgedStore struct {
	store.Store
	kept chan struct{}
	away atomic.Bool
}

func newJudgedStore() *judgedStore {
	return &judgedStore{Store: store.NewMemory(99), kept: make(chan struct{}, 99)}
}

func (j *judgedStore) Commit(ctx context.Context, session string, changes ...store.Change) error {
	err := j.Store.Commit(ctx, session, changes...)
	if changes[0].Kind == store.Refused && err == nil {
		j.kept <- struct{}{}
	}
	return err
}

func (j *judgedStore) Load(ctx context.Context, session string) ([]store.Record, error) {
	if j.away.Load() {
		return nil, errors.New("away")
	}
	return j.Store.Load(ctx, session)
}

// at is the session at another mount.
func (o *owned) at(opt Options) *owned {
	o.t.Helper()
	_, url := serve(o.t, opt)
	return &owned{o.t, url, o.session}
}

// keeping has a mount keep its sessions, as one of several processes.
func keeping(opt Options, kept store.Store) Options {
	opt.Legacy.Store, opt.Legacy.StoreScope = kept, "/mcp"
	return opt
}

// A mount that takes another one's place had seen nobody refused: a forged token that the one before had
// kept out took a session over by a tool for everybody.
func TestAForgedTokenTakesNoSessionOverAfterAReload_H6(t *testing.T) {
	alice, newer, forged := tokenOf("alice", 1, "signed"), tokenOf("alice", 2, "signed"), tokenOf("alice", 1, "made-up")
	opt := keeping(toolsOnly(t), store.NewMemory(99))
	opt.Servers = vouch.NewServers(nil, zerolog.Nop())
	o := open(t, opt, alice)
	o.call("forged, for a guarded tool", forged, "weather", http.StatusUnauthorized)
	after := o.at(opt)
	after.call("forged, after the reload", forged, "echo", http.StatusOK)
	after.owns("forged, after the reload", forged, false)
	after.call("a newer one", newer, "weather", http.StatusOK)
	after.owns("a newer one", newer, true)
}

// A replica that had refused nobody yet believed a forged token that another one kept out.
func TestAForgedTokenTakesNoSessionOverAtAnotherReplica_H6(t *testing.T) {
	alice, newer, newest, forged := tokenOf("alice", 1, "signed"), tokenOf("alice", 2, "signed"), tokenOf("alice", 3, "signed"), tokenOf("alice", 1, "made-up")
	server, kept := toolsOnly(t), newJudgedStore()
	o := open(t, keeping(server, kept), alice)
	other := o.at(keeping(server, kept)) // which starts before anybody is refused
	o.call("forged, for a guarded tool", forged, "weather", http.StatusUnauthorized)
	<-kept.kept
	other.call("forged, at the other", forged, "echo", http.StatusOK)
	for _, replica := range []*owned{other, o} {
		replica.owns("forged", forged, false)
	}
	other.call("a newer one", newer, "weather", http.StatusOK)
	other.owns("a newer one", newer, true)
	o.call("the newest one, at the first", newest, "weather", http.StatusOK)
	o.owns("the newest one", newest, true)
}

// A process that starts is told by the store what the one before it had refused.
func TestAForgedTokenTakesNoSessionOverAfterARestart_H6(t *testing.T) {
	alice, forged := tokenOf("alice", 1, "signed"), tokenOf("alice", 1, "made-up")
	server, kept := toolsOnly(t), newJudgedStore()
	m, url := serve(t, keeping(server, kept))
	o := openAt(t, url, alice)
	o.call("forged, for a guarded tool", forged, "weather", http.StatusUnauthorized)
	m.Close()
	after := o.at(keeping(server, kept))
	after.call("forged, after the restart", forged, "echo", http.StatusOK)
	after.owns("forged, after the restart", forged, false)
}

// While the store cannot be asked the others may know better. What is asked for is served.
func TestWhileTheStoreIsAwayNoTokenIsBelievedForWhatEverybodyGets_H6(t *testing.T) {
	alice, newer := tokenOf("alice", 1, "any"), tokenOf("alice", 2, "any")
	kept := newJudgedStore()
	kept.away.Store(true)
	o := open(t, keeping(judging(t, ""), kept), alice)
	o.call("a newer one", newer, "echo", http.StatusOK)
	o.owns("a newer one", newer, false)
	kept.away.Store(false)
	newest := tokenOf("alice", 3, "any")
	o.call("one that comes when it is back", newest, "echo", http.StatusOK)
	o.owns("one that comes when it is back", newest, true)
}
