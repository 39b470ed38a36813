package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/replica"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keeping is where a process keeps its sessions, and the other processes that share them.
// The zero one keeps nothing.
type keeping struct {
	store   store.Store
	room    *budget.Room
	up      func() bool   // whether the store can be reached
	wait    time.Duration // for a store that cannot be reached
	id      downstream.ReplicaID
	replica *replica.Replica // nil: no others can be reached
}

func openKeeping(ctx context.Context, cfg *config.Config, log zerolog.Logger) (k keeping, err error) {
	var keys []store.Key
	if k.store, keys, err = openStore(ctx, cfg.Store); err != nil || k.store == nil {
		return k, err
	}
	warnOf(ctx, k.store, log)
	for _, note := range astray(cfg) {
		log.Info().Msg(note)
	}
	k.room = roomOf(ctx, cfg.Store, k.store, log)
	for _, note := range exposures(cfg.Store) {
		log.Warn().Msg(note)
	}
	k.id = downstream.NewReplicaID()
	if cfg.Store.Shared() {
		k.monitor(cfg.Store.Outage, log)
	}
	if cfg.Replica.Listen == "" {
		return k, nil
	}
	k.replica, err = replica.Open(ctx, replica.Options{
		Store: k.store, Keys: keys, Replica: k.id, Listen: cfg.Replica.Listen, Address: cfg.Replica.Address, Log: log,
	})
	if err != nil {
		return keeping{}, errors.Join(err, k.store.Close())
	}
	log.Info().Stringer("replica", k.id).Str("address", k.replica.Address()).Msg("other replicas reach this one here")
	return k, nil
}

// monitor watches over a store behind a network.
func (k *keeping) monitor(outage string, log zerolog.Logger) {
	monitored := store.NewMonitored(k.store, func(up bool, why error) {
		if up {
			log.Info().Msg("the store of sessions can be reached again")
			return
		}
		log.Error().Err(why).Msg("the store of sessions cannot be reached: calls go on, those with questions as store.outage says")
	})
	k.store, k.up = monitored, monitored.Up
	if outage == "wait" {
		k.wait = time.Hour * 24 // each call's own deadline is nearer
	}
}

// astray tells of calls, tasks and links that only one of several replicas knows, so that requests for them must
// reach that one.
func astray(cfg *config.Config) (notes []string) {
	if !cfg.Store.Shared() {
		return nil
	}
	for _, m := range cfg.Mounts() {
		if m.Tasks == "host" && cfg.Replica.Listen == "" {
			notes = append(notes, m.Path+": tasks are hosted: where several bridges share the store, set replica.listen, or have a client reach the same one each time")
		}
		switch asks := m.Questions.Policy == "page" || m.Sampling.Provider != "off" && m.Sampling.Approve == "on"; {
		case !asks:
		case cfg.Replica.Listen == "":
			notes = append(notes, m.Path+": people are asked on a page: where several bridges share the store, set replica.listen, or have a client and its person reach the same one each time")
		case m.Session != "required":
			notes = append(notes, m.Path+": people are asked on a page: the same call again finds the one that waits from every replica in a session only; with several replicas and clients without sessions, set session: required, or have a client reach the same one each time")
		}
	}
	return notes
}

// degraded reports that the store cannot be reached.
func (k *keeping) degraded() bool { return k.up != nil && !k.up() }

// others reports whether there are other replicas, which serve what this one does not.
func (k *keeping) others() bool { return k.replica != nil && len(k.replica.Others()) > 0 }

// give has an endpoint keep its sessions there.
func (k *keeping) give(options *legacy.Options, scope string) {
	options.Store, options.StoreScope, options.StoreRoom, options.Replica, options.StoreWait = k.store, scope, k.room, k.id, k.wait
	if k.replica != nil {
		options.Peers = k.replica
	}
}

// serve has requests served that other replicas forward.
func (k *keeping) serve(mounts *fleet.Fleet, pages *desks) {
	if k.replica == nil {
		return
	}
	own := pages.own(mounts)
	k.replica.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark := legacy.Forwarded
		if replica.IsHandedOn(r) {
			mark = legacy.HandedOn
		}
		own.ServeHTTP(w, mark(r))
	}), mounts.Renew)
}

func (k *keeping) close() {
	if k.replica != nil {
		k.replica.Close()
	}
	if k.store != nil {
		_ = k.store.Close() // what was acknowledged is kept
	}
}
