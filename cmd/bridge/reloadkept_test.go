package main

import (
	"net/http"
	"path/filepath"
	"testing"
)

// A session that is in the store alone when another server takes the place of its own goes on there like
// those in memory, for timeouts.handover, also where the mount is gone; no session reaches the other server.
func TestSessionsInTheStoreAloneGoOnAfterAReload(t *testing.T) {
	one, two := named(t, "one"), named(t, "two")
	head := "listen: 127.0.0.1:0\nstore: {url: 'file:" + filepath.Join(t.TempDir(), "s.db") + "'}\n"
	before := head + "upstreams:\n  - {path: /changed, upstream: '" + one + "'}\n  - {path: /gone, upstream: '" + one + "'}\n  - {path: /same, upstream: '" + one + "'}\n"
	r := startWithFile(t, before)
	changed, gone, same := r.session("/changed"), r.session("/gone"), r.session("/same")
	r.stop()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}

	r = startWithFile(t, before)
	after := "upstreams:\n  - {path: /changed, upstream: '" + two + "'}\n  - {path: /same, upstream: '" + one + "', headers: {X-Team: '7'}}\n"
	r.reload(head+after, "was reloaded")
	r.expect("the last session under the old settings has ended") // of what is under the new ones by now
	r.serves("a session in the store", "/changed", changed, "one")
	r.serves("a newcomer", "/changed", "", "two")
	r.serves("a session of a mount that is gone", "/gone", gone, "one")
	r.serves("a session of the same server", "/same", same, "one")
	r.answers("the end of a session", http.MethodDelete, "/changed", changed, http.StatusNoContent)
	r.answers("a session that ended", http.MethodPost, "/changed", changed, http.StatusNotFound)
	r.answers("a session that never was", http.MethodPost, "/changed", same, http.StatusNotFound)

	r.reload(head+"timeouts: {handover: 0s}\nupstreams:\n  - {path: /changed, upstream: '"+two+"'}\n  - {path: /same, upstream: '"+two+"'}\n", "was reloaded")
	for resp := r.request(http.MethodPost, "/same", same, listTools); resp.StatusCode != http.StatusNotFound; {
		resp = r.request(http.MethodPost, "/same", same, listTools) // until the old mount is gone
	}
	r.serves("a session of the first reload", "/gone", gone, "one")
}
