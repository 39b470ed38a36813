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
	k.room = budget.NewRoom(storeSize(ctx, cfg.Store, k.store))
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
func (k *keeping) serve(mounts *fleet.Fleet) {
	if k.replica == nil {
		return
	}
	k.replica.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark := legacy.Forwarded
		if replica.IsHandedOn(r) {
			mark = legacy.HandedOn
		}
		mounts.ServeHTTP(w, mark(r))
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
