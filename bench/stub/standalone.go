package stub

import "net/http"

// get holds a session's standalone stream open until the client closes it.
func (l *Legacy) get(w http.ResponseWriter, r *http.Request, sid string) {
	s := l.session(sid)
	if s == nil {
		l.violate("GET for an unknown session")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	s.wake = wake
	s.mu.Unlock()
	l.streams.Add(1)
	defer l.streams.Add(-1)
	f := stream(w)
	f.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-wake:
		}
		_, _ = w.Write([]byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"))
		f.Flush()
	}
}

// changed tells every standalone stream that the list of tools changed.
func (l *Legacy) changed() {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.sessions {
		s.mu.Lock()
		wake := s.wake
		s.mu.Unlock()
		select {
		case wake <- struct{}{}: // a nil channel never proceeds
		default:
		}
	}
}
