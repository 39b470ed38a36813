package bridge

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

func cancel(conv *conversation, principal string, id int) {
	conv.Notify(downstream.Caller{Principal: principal}, jsonrpc.Message{
		Method: mcp.NotificationCancelled, Params: fmt.Appendf(nil, `{"requestId":%d}`, id),
	})
}

func TestCancelThatOvertakesItsCallEndsIt_DT13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, result(`{"content":[]}`))
		cancel(conv, "", 7)
		cancel(conv, "", 7) // said twice, it still means one call
		cancelled := request(t, conv, "7", mcp.MethodToolsCall, book)
		if !cancelled.abandoned || len(up.calls()) != 0 {
			t.Fatalf("abandoned %v, upstream calls %d", cancelled.abandoned, len(up.calls()))
		}
		request(t, conv, "8", mcp.MethodToolsCall, book).result()
	})
}

func TestCancelThatComesTooLateSparesALaterCallWithItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for before, params := range map[string]string{
			mcp.MethodToolsCall: book,
			mcp.MethodPing:      `{}`, // answered here
			mcp.MethodToolsList: `{}`, // kept from the first time
		} {
			done := result(`{"content":[],"tools":[],"ttlMs":60000,"cacheScope":"public"}`)
			conv, _ := session(t, Limits{}, done, done, done)
			request(t, conv, "2", mcp.MethodToolsList, `{}`)
			request(t, conv, "1", before, params).result()
			cancel(conv, "", 1)
			if c := request(t, conv, "1", mcp.MethodToolsCall, book); c.response == nil {
				t.Errorf("after %s: the next call was cancelled", before)
			}
		}
	})
}

func TestCancelThatComesBeforeItsCallIsRememberedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, result(`{"content":[]}`), result(`{"content":[]}`), result(`{"content":[]}`))
		cancel(conv, "", 1)
		pass(earlyCancelLife + time.Millisecond)
		request(t, conv, "1", mcp.MethodToolsCall, book).result()
		for id := range 2 * maxEarlyCancels {
			cancel(conv, "", 100+id)
		}
		if n := len(conv.table.early.known.waiting); n != maxEarlyCancels {
			t.Errorf("%d cancellations are kept", n)
		}
		request(t, conv, "100", mcp.MethodToolsCall, book).result()
	})
}

func TestCancelsOfStrangersTakeNobodysPlace_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{})
		cancel(conv, "", 7)
		for id := range 2 * maxEarlyCancels {
			conv.Notify(downstream.Caller{Principal: "eve", Unproven: true}, jsonrpc.Message{
				Method: mcp.NotificationCancelled, Params: fmt.Appendf(nil, `{"requestId":%d}`, 100+id),
			})
		}
		if c := request(t, conv, "7", mcp.MethodToolsCall, book); !c.abandoned || len(up.calls()) > 0 {
			t.Error("a cancelled call was made")
		}
	})
}

func TestCancelOfAnotherPrincipalWaitsForNobodysCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, result(`{"content":[]}`))
		cancel(conv, "mallory", 1)
		c := &client{t: t, conv: conv}
		conv.Serve(t.Context(), downstream.Caller{Principal: "alice"}, downstream.NewRequest(jsonrpc.Message{
			ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book),
		}), c)
		c.result()
	})
}

// TestACancelMeansTheIDThatItNames_P8: ids compare with their type and by their bytes, in whatever order they came.
func TestACancelMeansTheIDThatItNames_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []jsonrpc.ID{"1", `"1"`, "10", `"a"`, `"\u0061"`, "-0", "0"}
		for _, named := range append(ids, "1.0", "1e0", `"x"`, "null", "01") {
			conv, _ := session(t, Limits{}, slices.Repeat([]step{inputRequired(`"s"`, question1("q"))}, len(ids))...)
			var calls []*client
			for _, id := range ids {
				calls = append(calls, request(t, conv, string(id), mcp.MethodToolsCall, book))
			}
			conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":` + string(named) + `}`)})
			synctest.Wait()
			for i, c := range calls {
				if c.abandoned != (ids[i] == named) {
					t.Errorf("a cancellation of %s: %s was cancelled: %v", named, ids[i], c.abandoned)
				}
			}
		}
	})
}
