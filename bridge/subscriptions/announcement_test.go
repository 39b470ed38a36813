package subscriptions

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// keeper is a session that keeps what it hears, as all do until their client listens.
type keeper struct {
	ear
	told []string
}

func (k *keeper) Announce(_, _ string, params []byte) { k.told = append(k.told, string(params)) }

// say has the server announce something on its newest listen.
func (s *server) say(method, params string) {
	s.mu.Lock()
	notify := s.heard[len(s.heard)-1]
	s.mu.Unlock()
	notify(jsonrpc.Message{Method: method, Params: []byte(params)})
}

// What a server announces once is kept by each session that hears it: a hundred idle ones took
// 1.5 GB for one word of 15 MB.
func TestWhatManySessionsKeepOfAnAnnouncementIsShort(t *testing.T) {
	long := `"_meta":{"example.com/x":"` + strings.Repeat("x", 15<<20) + `"}`
	for given, want := range map[string]string{
		`{"_meta":{"example.com/x":1}}`: `{"_meta":{"example.com/x":1}}`,
		`{` + long + `}`:                "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s, k := &server{}, &keeper{}
			h, _ := hubOf(t, s, 4)
			h.Join(k, as("a"), tools)
			synctest.Wait()
			s.say(mcp.NotificationToolsListChanged, given)
			if len(k.told) != 1 || k.told[0] != want {
				t.Errorf("%d words are heard, of %d bytes", len(k.told), len(strings.Join(k.told, "")))
			}
		})
	}
}

// So is what one session hears of a resource, whose URI is no longer than what its client named.
func TestWhatASessionKeepsOfAResourceIsShort(t *testing.T) {
	named := "x:" + strings.Repeat("n", 2<<10)
	meta := `,"_meta":{"example.com/x":"` + strings.Repeat("x", 15<<20) + `"}}`
	for name, test := range map[string]struct{ given, want string }{
		"short":                 {`{"uri":"x:a","_meta":{"example.com/x":1}}`, `{"uri":"x:a","_meta":{"example.com/x":1}}`},
		"with long _meta":       {`{"uri":"x:a"` + meta, `{"uri":"x:a"}`},
		"a long one":            {`{"uri":"` + named + `"` + meta, `{"uri":"` + named + `"}`},
		"one that nobody named": {`{"uri":"` + named + `/a"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, k := &server{}, &keeper{}
				h, log := hubOf(t, s, 4)
				r := h.Resources(k, as("a"), 8)
				defer r.Close()
				if err := r.Subscribe("", "", named); err != nil {
					t.Fatal(err)
				}
				s.say(mcp.NotificationResourcesUpdated, test.given)
				if heard := strings.Join(k.told, ""); heard != test.want {
					t.Errorf("%d bytes are heard: %.100s", len(heard), heard)
				}
				if said := log.count("too long"); (said == 1) != (test.want == "") {
					t.Errorf("the log says so %d times", said)
				}
			})
		})
	}
}
