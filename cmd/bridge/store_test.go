package main

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/config"
)

// TestAStoreOfNoKindIsAnError: it is not taken for Redis, and no key is made for it.
func TestAStoreOfNoKindIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, url := range []string{"", "etcd:x", "redisx://secret@h", "Redis://h"} {
		s, _, err := openStore(t.Context(), config.Store{URL: url})
		if s != nil || err == nil || !strings.Contains(err.Error(), "store.url") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", url, s, err)
		}
	}
}
