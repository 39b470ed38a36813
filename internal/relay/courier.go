package relay

import (
	"context"
	"net/http/httptrace"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// carrier is how one transport over HTTP carries what a courier brings it.
type carrier interface {
	// request sends a request and returns when nothing more comes of that; ctx ends
	// when nobody waits for it any more. It says so when there will be no response.
	request(ctx context.Context, o *outgoing)
	// hand sends a notification or an answer, and returns when the server took it. The
	// error says why it did not.
	hand(ctx context.Context, o *outgoing) error
	// untaken is told of one that the server will not get.
	untaken(o *outgoing, why error)
}

// outgoing is a message on its way to the server.
type outgoing struct {
	caller downstream.Caller
	kind   jsonrpc.Kind
	id     jsonrpc.ID
	method string
	params []byte
	text   []byte
	held   budget.Hold // of the text, until the server has it
}

// maxWaiting bounds the messages that wait for the ones before them.
const maxWaiting = 64

// courier keeps messages in their order, where each is an HTTP request of its own. One
// goroutine sends: notifications and answers one after another, each when the one before
// was taken, and requests when what was before them was; each request then has a
// goroutine of its own.
type courier struct {
	carrier carrier
	account *budget.Account // of the client
	queue   chan outgoing
	again   chan struct{}   // places of messages that are offered again
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup

	lock   sync.Mutex               // guards what follows
	caller downstream.Caller        // who spoke last
	calls  map[jsonrpc.ID]*underway // by the ids, which a client may use again as soon as it has its answer
}

// underway is a request that has no answer yet.
type underway struct{ cutOff context.CancelFunc }

func newCourier(by carrier, account *budget.Account) *courier {
	c := &courier{carrier: by, account: account, queue: make(chan outgoing, maxWaiting), again: make(chan struct{}, maxAgain), calls: map[jsonrpc.ID]*underway{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.work.Go(c.deliver)
	return c
}

// Send implements Line.
func (c *courier) Send(caller downstream.Caller, msg *jsonrpc.Message, text []byte) error {
	o := outgoing{caller: caller, kind: msg.Kind(), id: msg.ID, method: msg.Method, params: msg.Params, text: text, held: budget.On(c.account)}
	if err := o.held.Carry(len(text)); err != nil {
		return err
	}
	if c.ctx.Err() == nil {
		select {
		case c.queue <- o:
			c.settle()
			return nil
		case <-c.ctx.Done():
		}
	}
	o.held.Release()
	return errEnded
}

// Close cuts off what is under way and waits for its end.
func (c *courier) Close() {
	c.cancel()
	c.work.Wait()
	c.settle()
}

// settle lets go of what waits, once nobody sends it any more. Whoever puts something there looks
// afterwards, so nothing stays.
func (c *courier) settle() {
	for c.ctx.Err() != nil {
		select {
		case o := <-c.queue:
			o.held.Release()
		default:
			return
		}
	}
}

func (c *courier) lastCaller() downstream.Caller {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.caller
}

// deliver sends what is queued.
func (c *courier) deliver() {
	for {
		select {
		case o := <-c.queue:
			c.lock.Lock()
			if o.caller.Authorization == "" && o.caller.Header == nil { // the bridge's own words, of the same session
				o.caller = c.caller
			}
			c.caller = o.caller
			c.lock.Unlock()
			if o.kind == jsonrpc.Request {
				c.begin(&o)
			} else {
				c.hand(&o)
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// begin sends a request, and waits until that is written: what follows, maybe
// its cancellation, must not overtake it.
func (c *courier) begin(o *outgoing) {
	ctx, cancel := context.WithCancel(c.ctx)
	own := &underway{cancel}
	c.lock.Lock()
	c.calls[o.id] = own
	c.lock.Unlock()
	written := make(chan struct{})
	once := sync.OnceFunc(func() { close(written) })
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once() }})
	c.work.Go(func() {
		defer o.held.Release()
		defer cancel()
		defer once()
		c.carrier.request(traced, o)
		c.lock.Lock()
		defer c.lock.Unlock()
		if c.calls[o.id] == own { // else there is another one
			delete(c.calls, o.id)
		}
	})
	<-written
}

// forget cuts a request off.
func (c *courier) forget(id jsonrpc.ID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if u := c.calls[id]; u != nil {
		u.cutOff()
		delete(c.calls, id)
	}
}
