package mount

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/negotiate"
)

// A server that changes its era is told of in the log, once each time, and not when
// nothing changed.
func TestTheLogTellsOfAServerThatChangedItsEra(t *testing.T) {
	var log strings.Builder
	v := &verdicts{log: zerolog.New(&log)}
	changes := 0
	v.changed = append(v.changed, func(bool) { changes++ })
	modern, legacy := &negotiate.Verdict{Era: negotiate.Modern}, &negotiate.Verdict{Era: negotiate.Legacy, Versions: []string{"2025-06-18"}}
	for _, verdict := range []*negotiate.Verdict{modern, {Era: negotiate.Unknown}, legacy, legacy, {Era: negotiate.Unknown}, modern, modern} {
		v.note(verdict)
	}
	const want = `{"level":"info","era":"legacy","versions":["2025-06-18"],"message":"the upstream speaks no newer revision than its clients: they are relayed to it unchanged"}
{"level":"info","era":"modern","message":"the upstream is no legacy server any more: clients are translated for"}
`
	if got := log.String(); got != want || changes != 2 {
		t.Errorf("the log says after %d changes\n%s", changes, got)
	}
}

// Who learns that the server is a legacy one learns it when the sessions have: a call
// that ends with it is then theirs to hand over.
func TestAVerdictIsKnownWhenAllSessionsHaveLearnedIt(t *testing.T) {
	begun, settled := make(chan struct{}), make(chan struct{})
	v := &verdicts{log: zerolog.Nop(), changed: []func(bool){func(bool) {
		close(begun)
		for range 1000 { // in which another goroutine has every chance
			select {
			case <-settled:
				t.Error("the verdict was given out while a session was still to learn it")
				return
			default:
				runtime.Gosched()
			}
		}
	}}}
	go v.note(&negotiate.Verdict{Era: negotiate.Legacy, Versions: []string{"2025-06-18"}})
	<-begun
	if !v.settle(t.Context()) {
		t.Error("the server was settled to be a modern one")
	}
	close(settled)
}

// meeting ends when something else has begun to end.
type meeting struct {
	server
	begun, other chan struct{}
	t            *testing.T
	end          context.Context
}

func (m *meeting) meet() {
	close(m.begun)
	select {
	case <-m.other:
	case <-m.end.Done():
		m.t.Error("what is at the server ends one after the other: each takes the time that ending may take")
	}
}

func (m *meeting) close() { m.meet() }

// meetingCaller is the shared process of a mount, as meeting is those of sessions.
type meetingCaller struct {
	*slowServer
	*meeting
}

func (m meetingCaller) Close() error { m.meet(); return nil }

// However many processes there are that take their time to end, a shutdown waits for
// that once.
func TestAShutdownIsOneDeadlineForAllProcesses(t *testing.T) {
	end := patience(t)
	one, two := make(chan struct{}), make(chan struct{})
	m, err := New(Options{Caller: newSlowServer()})
	if err != nil {
		t.Fatal(err)
	}
	m.server = &meeting{server: m.server, begun: one, other: two, t: t, end: end}
	m.Upstream = meetingCaller{slowServer: newSlowServer(), meeting: &meeting{begun: two, other: one, t: t, end: end}}
	if err := m.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
