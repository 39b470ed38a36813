package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/replica"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keeping is where a process keeps its sessions, and the other processes that share them.
// The zero one keeps nothing.
type keeping struct {
	store   store.Store
	seat    downstream.Seat
	replica *replica.Replica // nil: no others can be reached
}

func openKeeping(ctx context.Context, cfg *config.Config, log zerolog.Logger) (k keeping, err error) {
	var keys []store.Key
	if k.store, keys, err = openStore(ctx, cfg.Store); err != nil || k.store == nil {
		return k, err
	}
	k.seat = downstream.NewSeat()
	if cfg.Replica.Listen == "" {
		return k, nil
	}
	k.replica, err = replica.Open(ctx, replica.Options{
		Store: k.store, Keys: keys, Seat: k.seat, Listen: cfg.Replica.Listen, Address: cfg.Replica.Address, Log: log,
	})
	if err != nil {
		return keeping{}, errors.Join(err, k.store.Close())
	}
	log.Info().Stringer("replica", k.seat).Str("address", k.replica.Address()).Msg("other replicas reach this one here")
	return k, nil
}

// give has an endpoint keep its sessions there.
func (k *keeping) give(options *legacy.Options, scope string) {
	options.Store, options.StoreScope, options.Seat = k.store, scope, k.seat
	if k.replica != nil {
		options.Peers = k.replica
	}
}

// serve has requests served that other replicas forward.
func (k *keeping) serve(handler http.Handler) {
	if k.replica != nil {
		k.replica.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, legacy.Forwarded(r)) }))
	}
}

func (k *keeping) close() {
	if k.replica != nil {
		k.replica.Close()
	}
	if k.store != nil {
		_ = k.store.Close() // what was acknowledged is kept
	}
}
