package mount

import (
	"time"

	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/negotiate"
)

// defaultMinTTL serves sessions that open in a burst from one discover, whatever
// its ttlMs says: clients that open a session per call would else double the
// upstream's load.
const defaultMinTTL = 5 * time.Second

// commandTimeout is how long a server that is a command may take to its first
// answer: many are fetched by a package runner at their start.
const commandTimeout = 25 * time.Second

// How long a legacy server that clients are relayed to is believed to be one.
// Finding out takes three requests, or a process, which may not even answer the
// first of them. A command does not change as easily as what is behind a URL.
const (
	legacyTTL        = 30 * time.Second
	legacyCommandTTL = time.Hour
)

// probeOptions fills in what Options leaves to the mount.
func probeOptions(opt *Options) negotiate.Options {
	probe := opt.Probe
	probe.Fallback, probe.Guessed = opt.Draft.Version, signin.Guessed
	process := opt.Caller != nil || opt.Command != nil
	if probe.MinTTL == 0 {
		probe.MinTTL = defaultMinTTL
	}
	if probe.Timeout == 0 && process {
		probe.Timeout = commandTimeout
	}
	if probe.LegacyTTL == 0 && opt.Relay != negotiate.RelayNever {
		probe.LegacyTTL = legacyTTL
		if process {
			probe.LegacyTTL = legacyCommandTTL
		}
	}
	return probe
}
