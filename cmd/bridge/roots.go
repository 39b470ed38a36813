package main

import (
	"net/http"
	"sync"

	"github.com/mcpbridge/bridge/config"
)

// rootsByPath holds the configured roots of each mount. A modern server asks for the
// roots in each call that needs them, and 2026-07-28 has no notification that they
// changed: who is asked next must have the present ones, whichever settings its
// session began with. So they are no part of a mount, and stay when it is replaced.
type rootsByPath struct {
	mu    sync.RWMutex
	mount map[string]config.Roots
}

// of returns what tells the roots of a mount, which are roots until they are set anew.
func (b *rootsByPath) of(path string, roots config.Roots) func(http.Header) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.mount[path]; !known {
		b.setLocked(path, roots)
	}
	return func(header http.Header) []string {
		b.mu.RLock()
		now := b.mount[path]
		b.mu.RUnlock()
		return now.For(header)
	}
}

// set obeys a configuration that was read again.
func (b *rootsByPath) set(cfg *config.Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.mount)
	for _, m := range cfg.Mounts() {
		b.setLocked(m.Path, m.Roots)
	}
}

func (b *rootsByPath) setLocked(path string, roots config.Roots) {
	if b.mount == nil {
		b.mount = map[string]config.Roots{}
	}
	b.mount[path] = roots
}
