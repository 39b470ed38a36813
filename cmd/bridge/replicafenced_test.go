package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/sse"
)

// end follows a call from an event on, as an honest client does: it comes back for the rest of a stream that ends without the
// call's response, until it is told that there is none.
func (k *killable) end(stream *following) (m map[string]any) {
	k.t.Helper()
	for {
		for {
			e, err := stream.d.Next()
			if err != nil {
				break
			}
			if e.ID != "" {
				stream.last = e.ID
			}
			if json.Unmarshal(e.Data, &m) == nil && m["id"] == "call" {
				return m
			}
		}
		resp := k.request(http.MethodGet, "", "Last-Event-ID", stream.last)
		if resp.StatusCode != http.StatusOK {
			k.t.Errorf("who comes back after %s gets %s", stream.last, resp.Status)
			return nil
		}
		last := stream.last
		stream = k.follow(resp)
		stream.last = last
	}
}

// TestReplicasThatSleptWhileTheServerWorkedSendOnWhoComes: another has taken the call over meanwhile, and the one that slept
// has a round of its own, whose end is not the call's. It is found out whether that ends as it wakes or is still under way, and
// by those whom a third replica sends there.
func TestReplicasThatSleptWhileTheServerWorkedSendOnWhoComes(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"its round is over first": true, "its round goes on": false} {
		t.Run(name, func(t *testing.T) {
			f := newTrio(t)
			f.asker.hold = make(chan struct{})
			f.open()
			for i := range f.on {
				f.wantStatus(i, http.MethodPost, listTools, http.StatusOK) // which says that the tool may be called again
			}
			stream := f.on[0].follow(f.on[0].request(http.MethodPost, callRepeat))
			id, _ := stream.message()["id"].(string)
			f.on[0].answer(id)
			<-f.asker.arrived
			f.signal(0, testprocess.Stop)
			elsewhere := f.on[1].resume(stream.last) // which takes the call over, and has it done again
			<-f.asker.arrived
			if first {
				close(f.asker.hold)
				wantDone(t, elsewhere.message())
			}
			f.signal(0, testprocess.Continue)
			at := map[int]*following{0: f.on[0].resume(stream.last), 2: f.on[2].resume(stream.last)}
			if !first {
				close(f.asker.hold)
			}
			for i, back := range at {
				back.last = stream.last
				wantDone(t, f.on[i].end(back))
				wantDone(t, f.on[i].end(&following{d: sse.NewDecoder(bufio.NewReader(http.NoBody), 1), last: stream.last}))
			}
			wantRounds(t, f.asker, 2)
		})
	}
}

const callRepeat = `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"repeat","arguments":{}}}`
