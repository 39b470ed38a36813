package subscriptions

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

var away = &upstream.Failure{Cause: upstream.Unreachable, Detail: "connection refused"}

func TestListensThatNobodyHearsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, log := hubOf(t, s, 4)
		for i := range 1000 { // as one client can, with a token of its own making each time
			e, principal := &ear{}, strconv.Itoa(i)
			h.Join(e, as(principal), tools)
			h.Leave(e, principal)
		}
		if open, _ := s.listens(); open > 4 {
			t.Fatalf("%d listens are open", open)
		}
		if n := log.count("limits.listens"); n != 0 {
			t.Errorf("%d complaints while nobody was refused", n)
		}
		pass(lingering)
		if open, _ := s.listens(); open != 0 {
			t.Errorf("%d listens are left", open)
		}
	})
}

func TestTheLimitOfListensRefusesNewcomersAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, log := hubOf(t, s, 2)
		first, late := &ear{}, &ear{}
		h.Join(first, as("a"), tools)
		h.Join(&ear{}, as("b"), tools)
		for range 3 {
			h.Join(late, as("c"), tools)
		}
		h.Join(late, as("a"), tools) // shares
		if open, _ := s.listens(); open != 2 {
			t.Fatalf("%d listens are open", open)
		}
		if n := log.count("limits.listens"); n != 1 {
			t.Errorf("the log says so %d times", n)
		}
		h.Leave(late, "c") // of which it is no part
	})
}

func TestAListenComesBackSoonAfterItsServer_C19(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 0)
		e := &ear{}
		h.Join(e, as(""), tools)
		s.listens()
		s.fail(away)
		s.end <- away
		pass(time.Hour) // of outage
		s.fail(nil)
		if pass(longestPause * 3 / 2); s.open != 1 { // with jitter
			t.Error("the listen did not come back by itself")
		}
		if got := e.take(); !strings.Contains(got, mcp.NotificationToolsListChanged) {
			t.Errorf("C-20: after the gap the session heard %q", got)
		}
	})
}

func TestACallThatSucceedsBringsListensBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 0)
		h.Join(&ear{}, as(""), tools)
		s.listens()
		s.fail(away)
		s.end <- away
		pass(time.Hour)
		s.fail(nil)
		h.Alive()
		if pass(longestPause * 3 / 2 / alivePause); s.open != 1 {
			t.Error("the listen did not come back at once")
		}
	})
}

// Each acknowledgment is a sign of life for all the others, and so is each call.
func TestAServerThatEndsEachListenAtOnceIsAskedSeldom_C19(t *testing.T) {
	for name, end := range map[string]error{"in order": nil, "cut": &upstream.Failure{Cause: upstream.Lost}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				h, _ := hubOf(t, s, 0)
				s.acknowledge = func(context.Context, int) { s.end <- end }
				const sessions = 8
				var ears [sessions]ear
				for i := range ears {
					h.Join(&ears[i], as(strconv.Itoa(i)), tools)
				}
				for range 6000 { // calls go on for ten minutes
					pass(100 * time.Millisecond)
					h.Alive()
				}
				if _, asked := s.listens(); asked > 60*sessions {
					t.Errorf("%d listens asked %d times in ten minutes", sessions, asked)
				}
				if told := len(strings.Fields(ears[0].take())); told == 0 || told > 90 {
					t.Errorf("C-20: a session was told %d times", told)
				}
			})
		})
	}
}

func TestAListenThatLastedIsOpenedAgainSoon_C19(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 0)
		h.Join(&ear{}, as(""), tools)
		for n := range 50 {
			pass(lasting + time.Second) // and then it is cut, as by some proxies
			s.end <- nil
			if pass(firstPause * 3 / 2); s.open != 1 {
				t.Fatalf("it was not soon open again the %dth time", n)
			}
		}
	})
}

func TestAServerThatRefusesIsAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}}
		h, log := hubOf(t, s, 0)
		h.Join(&ear{}, as(""), tools)
		for range 600 { // calls go on
			pass(time.Second)
			h.Alive()
		}
		if _, asked := s.listens(); asked > 30 {
			t.Errorf("asked %d times in ten minutes", asked)
		}
		if n := log.count("opened again"); n == 0 {
			t.Error("nobody was told")
		}
	})
}

func TestTheLogIsNotFilledByManyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: away}
		h, log := hubOf(t, s, 0)
		for i := range 500 {
			h.Join(&ear{}, as(strconv.Itoa(i)), tools)
		}
		pass(noticeEvery - time.Second)
		if n := log.count(`"level":"warn"`); n != 1 {
			t.Errorf("%d lines for one outage", n)
		}
		s.fail(nil)
		pass(time.Minute)
		if n := log.count("is open again"); n != 0 { // it never was
			t.Errorf("%d lines of listens that were never open before", n)
		}
		s.end <- errors.New("lost")
		pass(time.Minute)
		if n := log.count("is open again"); n != 1 {
			t.Errorf("%d lines about the way back", n)
		}
	})
}

// Whoever makes up credentials is one party with all of them.
func TestTheLastListensAreForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 32)
		of := func(principal, party string) Identity {
			as := as(principal)
			as.Party = party
			return as
		}
		greedy := func(i int) bool { return h.Join(&ear{}, of("made-up-"+strconv.Itoa(i), "192.0.2.1"), tools) }
		got := 0
		for i := range 40 {
			if greedy(i) {
				got++
			}
		}
		if got != 28 {
			t.Errorf("one party has %d of 32 listens", got)
		}
		modest := &ear{}
		if !h.Join(modest, of("modest", "192.0.2.2"), tools) {
			t.Error("another party got none")
		}
		h.Leave(modest, "modest")
		if greedy(40) || !h.Join(modest, of("modest", "192.0.2.2"), tools) {
			t.Error("a party that has most of them took the place of another that lingered")
		}
	})
}

func TestWhoHasMostListensMakesRoomForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		h, _ := hubOf(t, s, 8)
		for i := range 100 {
			e, as := &ear{}, as(strconv.Itoa(i))
			as.Party = "one"
			if !h.Join(e, as, tools) {
				t.Fatalf("the %dth hears nothing though nobody hears the others", i)
			}
			h.Leave(e, as.Principal)
		}
		if open, _ := s.listens(); open != 7 {
			t.Errorf("%d listens are open", open)
		}
	})
}

// Until the server takes the first listen sessions use what it has said of its lists, and nobody hears of changes.
func TestAFirstListenThatCameLateIsToldOf_C20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := &server{err: away}, &ear{}
		h, _ := hubOf(t, s, 0)
		h.Join(e, as("a"), tools)
		pass(20 * time.Second)
		if got := e.take(); got != "" {
			t.Errorf("while nobody listens it hears %q", got)
		}
		s.fail(nil)
		pass(time.Minute)
		if got := e.take(); got != mcp.NotificationToolsListChanged {
			t.Errorf("once somebody listens it hears %q", got)
		}
	})
}
