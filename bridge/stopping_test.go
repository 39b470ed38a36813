package bridge

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/mcp"
)

// While the bridge stops the same call cannot be made again: no answer is taken for it that would be lost, and
// no request is told to come again.
func TestNobodyAnswersInVainWhileTheBridgeStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), inputRequired(`"t"`, form1("q")), inputRequired(`"u"`, form1("q")), result(booked))
		var stopping atomic.Bool
		conv.Driver.Stopping = stopping.Load
		detached := request(t, conv, "1", mcp.MethodToolsCall, `{"name":"book","arguments":{"a":1}}`)
		pass(20 * time.Second)
		link := linkOf(t, detached.result())
		waits := request(t, conv, "2", mcp.MethodToolsCall, `{"name":"book","arguments":{"a":2},"_meta":{"progressToken":7}}`)
		late := request(t, conv, "3", mcp.MethodToolsCall, `{"name":"book","arguments":{"a":3},"_meta":{"progressToken":8}}`)
		form := ada.form(link) // which is open in a browser as the bridge begins to stop
		stopping.Store(true)
		if status, text := form.send("f0=Ada&action=accept"); status != http.StatusGone || !strings.Contains(text, "no longer open") {
			t.Errorf("the answer is taken: %d %s", status, text)
		}
		if status, text := ada.open(link); status != http.StatusGone || !strings.Contains(text, "no longer open") {
			t.Errorf("the question is shown: %d %s", status, text)
		}
		ada.answer(linkOf(t, string(waits.notified(mcp.NotificationProgress)[0].Params)), "f0=Ada&action=accept")
		if got := waits.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 4 {
			t.Errorf("a call that waits got %s", got)
		}
		pass(20 * time.Second)
		if late.response.Error == nil || !strings.Contains(late.response.Error.Message, "shutting down") {
			t.Errorf("one that has waited for long enough got %+v", late.response)
		}
		if status, _ := ada.open(linkOf(t, string(late.notified(mcp.NotificationProgress)[0].Params))); status != http.StatusGone {
			t.Errorf("its question is open: %d", status)
		}
	})
}
