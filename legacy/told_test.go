package legacy

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/rs/zerolog"
)

// journal is a log that several write to.
type journal struct {
	mu sync.Mutex
	bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.Buffer.Write(p)
}

// count tells how often a text stands in the log at a level.
func (j *journal) count(level, text string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.String()) {
		if strings.Contains(line, `"level":"`+level+`"`) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// What gets lost, whoever is to blame, stands in the log with its session, some lines of a
// kind a minute, and without a word of what it said.
func TestTheLogTellsOfWhatGetsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		level, message string
		cause          func(t *testing.T, p *peer, b *fakeBackend)
	}{
		"an answer to nothing": {"info", message.LateAnswer, func(t *testing.T, p *peer, b *fakeBackend) {
			conv := b.last()
			for i := range 2 * noticeBurst {
				conv.mu.Lock()
				conv.leaving = 1 // the question is not open
				conv.mu.Unlock()
				want(t, "answer", p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","result":{"secret":1}}`, i)).StatusCode, 202)
			}
		}},
		"events beyond the log": {"warn", "resumed a stream whose log had overflowed", func(t *testing.T, p *peer, b *fakeBackend) {
			answer := p.async(hold)
			k := <-b.held
			go k.Send([]byte(note))
			resp := <-answer
			readEvents(t, resp).next()
			_ = resp.Body.Close()
			synctest.Wait()
			for range sessions.DefaultEvents + 1 {
				k.Send([]byte(note))
			}
			for range 2 * noticeBurst {
				resp := p.get("1-1")
				readEvents(t, resp).next()
				_ = resp.Body.Close()
				synctest.Wait()
			}
			k.finish(`{}`)
		}},
		"messages that nobody fetches": {"warn", "dropped the oldest", func(t *testing.T, p *peer, b *fakeBackend) {
			for i := range 3 + 2*noticeBurst {
				b.last().push.Push(fmt.Sprintf("notifications/resources/updated https://user:secret@files.example/%d?token=secret", i), []byte(`{"secret":1}`))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log journal
				b := newFake()
				_, p := servePipe(t, Options{MaxPending: 3, Logger: zerolog.New(&log).Level(zerolog.InfoLevel)}, b)
				p.initialize(mcp.V20250618)
				tc.cause(t, p, b)
				want(t, "lines", log.count(tc.level, tc.message), noticeBurst)
				want(t, "lines with the session", log.count(tc.level, `"session_id":"`+p.session[:8]+`"`), noticeBurst)
				want(t, "secrets", log.count(tc.level, "secret"), 0)
			})
		})
	}
}
