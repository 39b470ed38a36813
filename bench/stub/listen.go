package stub

import (
	"net/http"

	"github.com/mcpbridge/bridge/bench/scan"
)

// listen holds a subscriptions/listen stream open until the client closes it.
func (m *Modern) listen(w http.ResponseWriter, r *http.Request, b *buffer, q *request) {
	filter := scan.Path(q.params, "notifications")
	if !scan.Object(filter) {
		m.refuse(w, b, q.id, &fault{-32602, "listen without a filter"})
		return
	}
	id := append([]byte(nil), q.id...)
	tools := string(scan.Get(filter, "toolsListChanged")) == "true"
	agreed := `{}`
	if tools {
		agreed = `{"toolsListChanged":true}`
	}
	wake := make(chan struct{}, 1)
	m.enter(wake)
	defer m.leave(wake)

	f := stream(w)
	b.out = append(beginEvent(b.out[:0]), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`...)
	b.out = append(append(append(append(b.out, id...), `},"notifications":`...), agreed...), `}}`...)
	_, _ = w.Write(endEvent(b.out))
	f.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-wake:
		}
		if !tools {
			continue
		}
		b.out = append(beginEvent(b.out[:0]), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`...)
		b.out = append(append(b.out, id...), `}}}`...)
		_, _ = w.Write(endEvent(b.out))
		f.Flush()
	}
}

func (m *Modern) enter(wake chan struct{}) {
	m.listens.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake[wake] = struct{}{}
}

func (m *Modern) leave(wake chan struct{}) {
	m.listens.Add(-1)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wake, wake)
}

// changed tells every listen stream that the list of tools changed. A change
// that was not yet written swallows the next one, as the protocol allows.
func (m *Modern) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for wake := range m.wake {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}
