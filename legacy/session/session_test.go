package session_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sessions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a backend that notes how its conversations end.
type host struct {
	downstream.Backend
	fails error
	mu    sync.Mutex
	ended []error
}

type conversation struct {
	downstream.Conversation
	host *host
}

func (h *host) Open(context.Context, downstream.Caller, jsonrpc.Message, downstream.Pusher) (downstream.Conversation, []byte, error) {
	if h.fails != nil {
		return nil, nil, h.fails
	}
	return &conversation{host: h}, []byte(`{}`), nil
}

func (*conversation) Version() mcp.Version { return mcp.V20250618 }

func (c *conversation) Close(cause error) {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.ended = append(c.host.ended, cause)
}

func (h *host) ends() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// set returns the sessions of an endpoint with places for two.
func set(t *testing.T, h *host) *session.Set {
	door := gate.New()
	streams := stream.NewEndpoint(stream.Options{
		MaxStreams: 2, MaxPending: 2, KeepAlive: 15 * time.Second, Retention: time.Minute, WriteTimeout: time.Second, ParkAfter: time.Second,
		Gate: door, Logger: zerolog.Nop(), Slow: zerolog.Nop(),
	})
	s := session.NewSet(session.Options{Backend: h, Streams: streams, Gate: door, MaxSessions: 2, IdleTimeout: time.Hour, Logger: zerolog.Nop(), Evicted: zerolog.Nop()})
	t.Cleanup(func() { s.Close(); streams.Close() })
	return s
}

// by is a request with credentials that names a session.
func by(token, id string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if id != "" {
		r.Header.Set(mcp.HeaderSessionID, id)
	}
	return r
}

func open(t *testing.T, set *session.Set, token string) (*session.Session, error) {
	t.Helper()
	caller := set.Caller(by(token, ""))
	s, err := set.New(caller, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), caller, jsonrpc.Message{}); err != nil {
		return nil, err
	}
	return s, s.List()
}

func TestASessionIsFoundByWhoOpenedIt_H8(t *testing.T) {
	sessions := set(t, &host{})
	s, err := open(t, sessions, "ada")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		r    *http.Request
		want session.Naming
	}{
		"its owner":       {by("ada", s.ID()), session.Known},
		"somebody else":   {by("bob", s.ID()), session.Unknown},
		"nobody":          {by("", s.ID()), session.Unknown},
		"another session": {by("ada", "x"), session.Unknown},
		"no session":      {by("ada", ""), session.Nameless},
	} {
		found, caller, named, _ := sessions.Find(tc.r)
		if named != tc.want || (found == s) != (named == session.Known) || named == session.Known && caller.Principal == "" {
			t.Errorf("%s: %v, named %v", name, found, named)
		}
	}
}

func TestWhatIsNotListedIsNobodys(t *testing.T) {
	h := &host{fails: errors.New("no server")}
	sessions := set(t, h)
	if _, err := open(t, sessions, "ada"); err == nil || sessions.Len() != 0 {
		t.Errorf("%v, %d sessions", err, sessions.Len())
	}
}

// Its end reaches the conversation once, with why.
func TestEndsReachTheConversation_A30_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		set := set(t, h)
		removed, _ := open(t, set, "ada")
		for range 2 {
			if set.Remove(removed.ID()) != nil || set.Holds(removed.ID()) {
				t.Error("it is there")
			}
		}
		idle, _ := open(t, set, "ada")
		<-time.After(time.Hour + time.Second)
		set.Expire()
		if set.Holds(idle.ID()) {
			t.Error("an unused session is there")
		}
		last, _ := open(t, set, "ada")
		set.Close()
		if got := h.ends(); len(got) != 3 || !errors.Is(got[0], sessions.Removed) || !errors.Is(got[1], sessions.Expired) || set.Holds(last.ID()) {
			t.Errorf("ends: %v", got)
		}
	})
}

// Who comes when all places are taken gets that of the session that nobody has used for
// longest, unless it works, or was just used. (One that was never used since it was opened goes
// at once: whoever floods a bridge with sessions has those.)
func TestTheOldestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		set := set(t, h)
		busy, _ := open(t, set, "ada")
		busy.Begin(1, false)
		idle, _ := open(t, set, "ada")
		set.Find(by("ada", idle.ID()))
		if _, err := open(t, set, "bob"); !errors.Is(err, sessions.ErrFull) || set.Room("") {
			t.Errorf("a session that was just used gave way: %v", err)
		}
		<-time.After(session.RecentUse + time.Second)
		young, err := open(t, set, "bob")
		if err != nil || set.Holds(idle.ID()) || !set.Holds(busy.ID()) || !set.Holds(young.ID()) {
			t.Errorf("%v: the unused one %v, the busy one %v", err, set.Holds(idle.ID()), set.Holds(busy.ID()))
		}
		busy.Done(1, false)
	})
}

// A challenge that came too late meets the next request with the credentials that were
// refused, and no other (H-4).
func TestALateChallengeMeetsWhoWasRefused_H4(t *testing.T) {
	set := set(t, &host{})
	s, _ := open(t, set, "ada")
	refusal := &downstream.Refusal{Status: http.StatusUnauthorized}
	s.Challenge(refusal, "Bearer ada")
	if s.Challenged("Bearer new") != nil {
		t.Error("new credentials were refused")
	}
	s.Challenge(refusal, "Bearer ada")
	if s.Challenged("Bearer ada") != refusal || s.Challenged("Bearer ada") != nil {
		t.Error("a challenge is told once")
	}
}

// A hosted task goes on as its call's request, which its client does not wait for.
func TestAHeldSessionStaysAndHasItsTimeAfterwards_A33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions := set(t, &host{})
		s, err := open(t, sessions, "ada")
		if err != nil {
			t.Fatal(err)
		}
		known := func() bool {
			_, _, named, _ := sessions.Find(by("ada", s.ID()))
			return named == session.Known
		}
		s.Begin(1, false)
		time.Sleep(100 * time.Minute)
		for _, other := range []string{"bob", "eve", "joe"} { // which is more than there are places
			if _, err := open(t, sessions, other); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(100 * time.Minute)
		s.Done(1, false)
		time.Sleep(59 * time.Minute)
		if !known() {
			t.Error("it is gone before its client could fetch what it was held for")
		}
		time.Sleep(61 * time.Minute)
		if known() {
			t.Error("it is still there")
		}
	})
}
