package bridge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// atTheServer is a call that was asked something, and whose answer the server works on until it is let go on.
func atTheServer(t *testing.T) (conv *conversation, s *strongbox, goOn func(), cancelled func() bool) {
	t.Helper()
	done, gone := make(chan struct{}), false
	conv, _, s = keeping(t, inputRequired(`"s"`, question1("q")), func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		select {
		case <-done:
			return result(booked)(ctx, call, notify)
		case <-ctx.Done():
			gone = true
			return nil, &upstream.Failure{Cause: upstream.Canceled, Err: ctx.Err()}
		}
	})
	s.answer(0, accepted)
	synctest.Wait()
	return conv, s, func() { close(done) }, func() bool { synctest.Wait(); return gone }
}

// TestACallAtTheServerLearnsThatItIsAnothers: whoever has it may be told that it is cancelled, and has told its client
// perhaps that nobody knows what comes of it.
func TestACallAtTheServerLearnsThatItIsAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, s, _, cancelled := atTheServer(t)
		s.err = downstream.ErrGone
		conv.Renew()
		if !cancelled() || !s.left || s.dropped || s.client.over() || conv.Knows(downstream.Caller{}, "7") {
			t.Errorf("its request is cancelled: %v; left %v, removed %v, over %v", cancelled(), s.left, s.dropped, s.client.over())
		}
	})
}

// TestACallThatNobodyTookGoesOnAtTheServer: a lease that had lapsed is not yet a call that is another's, nor is
// a store that cannot say whose it is.
func TestACallThatNobodyTookGoesOnAtTheServer(t *testing.T) {
	for _, err := range []error{nil, errors.New("away")} {
		synctest.Test(t, func(t *testing.T) {
			conv, s, goOn, cancelled := atTheServer(t)
			kept := len(s.kept)
			s.err = err
			conv.Renew()
			if cancelled() || s.left || err == nil && (len(s.kept) != kept+1 || !s.kept[kept].Again || s.kept[kept].N <= s.kept[kept-1].N) {
				t.Errorf("%v: its request is cancelled: %v; left %v; made sure %d times", err, cancelled(), s.left, len(s.kept)-kept)
			}
			goOn()
			synctest.Wait()
			s.result()
		})
	}
}

// TestACallThatWaitsStaysWhereTheStoreCannotSay whose it is.
func TestACallThatWaitsStaysWhereTheStoreCannotSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _, s := keeping(t, inputRequired(`"s"`, question1("q")), result(booked))
		s.err = errors.New("away")
		conv.Renew()
		s.err = nil
		s.answer(0, accepted)
		synctest.Wait()
		s.result()
	})
}
