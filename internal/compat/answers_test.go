package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// raw answers with a status, a content type and a body as they are.
func (x *incoming) raw(status int, contentType, body string) {
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(status)
	_, _ = io.WriteString(x.w, body)
}

// result ends the request with a result, on the stream if one was begun.
func (x *incoming) result(text string) {
	msg := `{"jsonrpc":"2.0","id":` + x.ID + `,"result":` + text + `}`
	if x.open {
		x.event(msg)
		return
	}
	x.raw(200, "application/json", msg)
}

// fail ends the request with an error; data may be empty. A modern server sends
// it with HTTP status 400 or 404 (E-39).
func (x *incoming) fail(code int, message, data string) {
	quoted, _ := json.Marshal(message)
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s`, x.ID, code, quoted)
	if data != "" {
		msg += `,"data":` + data
	}
	msg += `}}`
	if x.open {
		x.event(msg)
		return
	}
	status := 400
	if code == -32601 {
		status = 404
	}
	x.raw(status, "application/json", msg)
}

// event sends one event of the response stream.
func (x *incoming) event(msg string) {
	if !x.open {
		x.open = true
		x.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = fmt.Fprintf(x.w, "data: %s\n\n", msg)
	_ = http.NewResponseController(x.w).Flush() // fails when the client left, which tests await otherwise
}

// notify sends an interim notification.
func (x *incoming) notify(method, params string) {
	x.event(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// gone blocks until the bridge closes the response stream, or the test is over.
func (x *incoming) gone() {
	select {
	case <-x.ctx.Done():
	case <-time.After(patience):
	}
}

// token returns the request's progress token, raw.
func (x *incoming) token() string { return member(x.Params, "_meta", "progressToken") }

func result(text string) answer { return func(x *incoming) { x.result(text) } }

func failing(code int, message, data string) answer {
	return func(x *incoming) { x.fail(code, message, data) }
}

// listenForever acknowledges a subscription as it was asked for and keeps it open.
func listenForever(x *incoming) {
	x.acknowledge()
	x.gone()
}

func (x *incoming) acknowledge() {
	x.announce("notifications/subscriptions/acknowledged", `"notifications":`+member(x.Params, "notifications"))
}

// announce sends a notification of the subscription; members may be empty.
func (x *incoming) announce(method, members string) {
	if members != "" {
		members = "," + members
	}
	x.notify(method, `{"_meta":{"`+metaPrefix+`subscriptionId":`+x.ID+`}`+members+`}`)
}
