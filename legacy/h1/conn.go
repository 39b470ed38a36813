package h1

import (
	"context"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/mcpbridge/bridge/internal/meter"
)

// serve is the connection's goroutine.
func (cn *conn) serve() {
	defer cn.leave()
	if cn.server.delegate {
		cn.goOn()
		return
	}
	cn.settle()
	if !cn.tab.Hold(meter.LeanCost) {
		cn.tab.Leaves(cn.nc.Close)
		_ = cn.receive(func() error { return cn.in.fill(time.Now().Add(lingering)) })
		cn.turnAway()
		return
	}
	for {
		switch cn.next() {
		case gone:
			return
		case foreign:
			cn.handOver(cn.early)
			return
		case refused:
			cn.refuse()
			return
		case greedy:
			cn.turnAway()
			return
		}
		if !cn.exchange() {
			return
		}
		cn.served = true
		cn.state.Store(idle)
		if cn.server.closing.Load() {
			return
		}
	}
}

// goOn waits for the next request for net/http, which would take the connection for a new one, and a shutdown wait for it.
func (cn *conn) goOn() {
	if cn.in.buffered() > 0 || cn.in.fill(after(cn.server.idleTimeout())) == nil {
		cn.handOver(nil)
	}
}

// giveUp hands a connection over that cannot even be read here.
func (cn *conn) giveUp(early []byte) {
	defer cn.leave()
	cn.handOver(early)
}

// settle finds out what all requests of the connection have in common. The
// address comes first: asking for it may read from the connection.
func (cn *conn) settle() {
	from := cn.nc.RemoteAddr()
	cn.head.remote = from.String()
	cn.tab = cn.server.ledger.Open(from)
	ctx := context.WithValue(context.Background(), http.ServerContextKey, cn.server.standard)
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, cn.nc.LocalAddr())
	if f := cn.server.standard.ConnContext; f != nil {
		ctx = f(ctx, cn.nc)
	}
	cn.values = ctx
}

// next waits for a request's head.
func (cn *conn) next() verdict {
	limit := after(cn.server.headTimeout())
	if cn.served {
		limit = after(cn.server.idleTimeout())
	}
	begun := !cn.served
	v := cn.look()
	for v == partial {
		if cn.in.buffered() > 0 && !begun {
			begun, limit = true, after(cn.server.headTimeout())
		}
		if err := cn.in.fill(limit); err != nil {
			if cn.state.Load() == dismissed && pending(cn.nc) {
				// It came between the shutdown's word and the end, which would have destroyed it.
				cn.in.resume()
				cn.state.Store(idle)
				begun, limit = true, after(lingering)
				continue
			}
			if v = gone; err == io.EOF && cn.in.buffered() > 0 {
				v = foreign // net/http knows what to say to half a head
			}
			break
		}
		v = cn.look()
	}
	if v == long {
		if !begun {
			limit = after(cn.server.headTimeout())
		}
		v = cn.readOn(limit)
	}
	if v != gone && !cn.state.CompareAndSwap(idle, active) && !cn.returns(v) {
		v = gone
	}
	return v
}

// returns has a connection serve what came with the shutdown's word: it was read, so that nobody else will. What is net/http's is
// not: that takes no connection any more.
func (cn *conn) returns(v verdict) bool {
	if v == foreign {
		return false
	}
	cn.in.resume()
	cn.state.Store(active)
	return true
}

// strayEnds is how many line end characters are passed over after a POST, for old
// clients that send one too many.
const strayEnds = 4

// look judges what has been read.
func (cn *conn) look() verdict {
	b := cn.in.bytes()
	for len(b) > 0 && cn.stray > 0 && (b[0] == '\r' || b[0] == '\n') {
		cn.in.skip(1)
		cn.stray--
		b = cn.in.bytes()
	}
	if len(b) == 0 {
		return partial
	}
	n, v := cn.head.read(b)
	cn.in.skip(n)
	cn.stray = 0
	if v == partial && len(b) == cn.in.size() {
		v = long
	}
	return v
}

func after(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// exchange serves the request whose head was read. It reports whether the
// connection can serve another one.
func (cn *conn) exchange() (again bool) {
	x := &exchange{}
	x.ctx.cn, x.body.cn, x.resp.cn, x.resp.x = cn, cn, cn, x
	r := cn.head.req.WithContext(&x.ctx)
	r.ContentLength = cn.head.length
	r.Body = http.NoBody
	if r.ContentLength > 0 {
		r.Body = &x.body
		x.body.left = r.ContentLength
	}
	x.resp.length, x.resp.head = -1, r.Method == http.MethodHead
	cn.in.begin(r.ContentLength)
	ok := cn.call(&x.resp, r)
	cn.head.check()
	if !ok || x.resp.hijacked {
		return false
	}
	if cn.head.req.Method == http.MethodPost {
		cn.stray = strayEnds
	}
	again = x.resp.finish()
	if !x.body.end(again) {
		if x.resp.err == nil {
			cn.linger()
		}
		return false
	}
	return again
}

// call runs the handler, and ends the request's context. It reports false when the
// handler gave up.
func (cn *conn) call(w *response, r *http.Request) (ok bool) {
	defer func() {
		w.x.ctx.end()
		if ok {
			return
		}
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			cn.server.logf("http: panic serving %v: %v\n%s", cn.head.remote, v, debug.Stack())
		}
	}()
	cn.server.handler.ServeHTTP(w, r)
	return true
}

// lingering is how long a client may go on sending a request that was refused
// unread: closing at once could destroy the response on its way.
const lingering = 500 * time.Millisecond

// linger closes the sending half and waits for the client to close.
func (cn *conn) linger() {
	half, ok := cn.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	limit := time.Now().Add(lingering)
	for cn.receive(func() error { return cn.in.discard(limit) }) == nil {
	}
}

// receive runs what waits for the client to send more of a request. A shutdown
// cuts it short.
func (cn *conn) receive(wait func() error) error {
	cn.state.Store(receiving)
	defer cn.state.Store(active)
	if cn.server.closing.Load() {
		return errShutdown
	}
	return wait()
}

const refusal = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 59\r\n\r\n" +
	"a request has Content-Length or Transfer-Encoding, not both"

// refuse answers a request of which nobody knows where it ends.
func (cn *conn) refuse() { cn.say(refusal) }

// turnAway answers who holds too much.
func (cn *conn) turnAway() {
	cn.tab.Leaves(cn.nc.Close)
	cn.say(cn.tab.Refusal())
}

// say ends the connection with a response, whatever has come of a request.
func (cn *conn) say(response string) {
	cn.in.skip(cn.in.buffered())
	cn.allowWrite(len(response))
	if _, err := io.WriteString(cn.nc, response); err == nil {
		cn.linger()
	}
}

// dismiss is the shutdown's word to the connection. A request that has come already, and
// whose goroutine has yet to see it, is served.
func (cn *conn) dismiss() {
	if cn.state.Load() == idle && pending(cn.nc) {
		return
	}
	cn.in.cutOff(func() bool {
		return cn.state.CompareAndSwap(idle, dismissed) || cn.state.Load() == receiving
	})
}

// handOver lets net/http serve the connection from now on. A nil early stands
// for what is in the buffer.
func (cn *conn) handOver(early []byte) {
	cn.takeAway()
	if early == nil {
		early = append(early, cn.in.bytes()...)
	}
	cn.server.pass(cn.nc, early, cn.tab)
	cn.tab = nil
}

// takeAway makes the connection somebody else's: nobody reads from it any more,
// and it has no deadlines.
func (cn *conn) takeAway() {
	cn.in.stop()
	_ = cn.nc.SetWriteDeadline(time.Time{})
	cn.given = true
}

// leave ends the connection's part in the server.
func (cn *conn) leave() {
	if !cn.given {
		_ = cn.nc.Close()
	}
	cn.in.stop()
	cn.in.release()
	cn.tab.Close()
	cn.server.remove(cn)
}
