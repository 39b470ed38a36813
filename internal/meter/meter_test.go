package meter

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
)

const mib = 1 << 20

// host is a tenant of its own for each address.
func host(from net.Addr) string { return from.String() }

type address string

func (a address) Network() string { return "test" }
func (a address) String() string  { return string(a) }

// fed is a connection from which texts are read, one at a time.
type fed struct {
	net.Conn
	from    address
	texts   []string
	written strings.Builder
}

func (f *fed) Read(p []byte) (int, error) {
	if len(f.texts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.texts[0])
	f.texts = f.texts[1:]
	return n, nil
}

func (f *fed) Write(p []byte) (int, error)     { return f.written.Write(p) }
func (f *fed) Close() error                    { return nil }
func (f *fed) RemoteAddr() net.Addr            { return f.from }
func (f *fed) SetReadDeadline(time.Time) error { return nil }

func read(t *testing.T, c *Conn, text string) {
	t.Helper()
	f, _ := c.Conn.(*fed)
	f.texts = append(f.texts, text)
	if _, err := c.Read(make([]byte, len(text))); err != nil {
		t.Fatal(err)
	}
}

func conn(l *Ledger, from string) *Conn { return Of(l.Conn(&fed{from: address(from)}, nil)) }

func TestOverHTTP1BytesCountWhileAHeadIsRead(t *testing.T) {
	memory := budget.New(64 * mib)
	c := conn(New(memory, host, nil), "a")
	charged := func(what string, want int) {
		t.Helper()
		if got := int(memory.Used()); got != want {
			t.Errorf("%s: %d bytes are charged, want %d", what, got, want)
		}
	}
	text := strings.Repeat("x", 4<<10)
	read(t, c, "GET")
	charged("a small head", httpCost)
	read(t, c, text)
	charged("a head", httpCost+fieldsMost)
	for range 30 {
		read(t, c, text)
	}
	charged("more than a head may have", httpCost+headFactor*headMost)
	c.Begun(1)
	charged("a handler runs", httpCost)
	read(t, c, text)
	charged("a body", httpCost)
	c.Note(http.StateIdle)
	read(t, c, text)
	charged("the next head", httpCost+fieldsMost)
	c.Note(http.StateHijacked)
	read(t, c, text)
	charged("no HTTP any more", httpCost)
	_ = c.Close()
	_ = c.Close()
	charged("closed", 0)
}

// HTTP/2 is idle before its first head, of which much may have been read by then.
func TestWhatIsReadBeforeHTTP2IsIdleCounts(t *testing.T) {
	memory := budget.New(64 * mib)
	c := conn(New(memory, host, nil), "a")
	read(t, c, strings.Repeat("x", 4<<10))
	c.Note(http.StateActive)
	c.Note(http.StateIdle)
	if got := int(memory.Used()); got != httpCost+fieldsMost {
		t.Errorf("a preface with most of a head is charged with %d bytes", got)
	}
	_ = c.Close()
}

func TestOverHTTP2BodiesAndTheFramesOfALongTimeAreNoHeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(64 * mib)
		c := conn(New(memory, host, nil), "a")
		read(t, c, "PRI")
		c.Begun(2)
		text := strings.Repeat("x", 8<<10)
		read(t, c, text)
		if got := int(memory.Used()); got < h2Cost+fieldsMost {
			t.Errorf("what may be a head is charged with %d bytes", got)
		}
		c.Body(len(text))
		if got := int(memory.Used()); got != h2Cost {
			t.Errorf("what was a body is charged with %d bytes", got-h2Cost)
		}
		for range 120 { // a stream for which a client tells how much it may be sent
			time.Sleep(headWindow / 30)
			read(t, c, text[:20])
		}
		if got := int(memory.Used()); got > h2Cost+fieldFactor*60*20 {
			t.Errorf("other frames are charged with %d bytes", got-h2Cost)
		}
		_ = c.Close()
	})
}

func TestTheFirstConnectionsOfAnAddressAreLent(t *testing.T) {
	memory, refused := budget.New(8*mib), 0
	l := New(memory, host, func(net.Addr, error) { refused++ })
	memory.Guest("a").Charge(5 * mib) // more than it may have
	for range lentConnections {
		if !l.Open(address("a")).Hold(LeanCost) {
			t.Fatal("one of the first is refused")
		}
	}
	tab := l.Open(address("a"))
	if tab.Hold(LeanCost) || refused != 1 {
		t.Errorf("one more is let in; %d refusals are told", refused)
	}
	tab.Close()
	if !l.Open(address("b")).Hold(LeanCost) {
		t.Error("another address is refused")
	}
	if first := l.Open(address("c")); first.Hold(LeanCost + 4*mib) {
		t.Error("more is lent than one connection may have")
	}
}

// Who stands for many is not turned away when there is nothing left: some of them behave.
func TestWhoStandsForManyIsLetIn(t *testing.T) {
	memory := budget.New(mib)
	l := New(memory, func(net.Addr) string { return "" }, func(net.Addr, error) {})
	memory.Guest("a").Charge(2 * mib)
	tab := l.Open(address("proxy"))
	if !tab.Hold(LeanCost) || tab.Hold(mib) {
		t.Error("a connection is to be let in, and a head that has no end is not")
	}
	tab.Close()
	if memory.Used() != 2*mib {
		t.Errorf("%d bytes are left", memory.Used()-2*mib)
	}
}

// bodyOf returns the body of an answer, which is as long as its head says.
func bodyOf(t *testing.T, answer string) string {
	t.Helper()
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	if !strings.Contains(head, "Content-Length: "+strconv.Itoa(len(body))) {
		t.Errorf("a body of %d bytes has the head %q", len(body), head)
	}
	return body
}

// Who is refused for what others hold is not told to hold it. net/http may read again.
func TestWhoIsRefusedIsToldWhyAndOnce(t *testing.T) {
	for owner, want := range map[string]string{
		"a": "this address holds too much of the bridge's memory; try again a bit later\n",
		"b": "the bridge is short of memory; try again a bit later\n",
	} {
		memory := budget.New(mib)
		l := New(memory, host, func(net.Addr, error) {})
		memory.Guest(owner).Charge(mib * 3 / 4)
		if owner == "b" {
			memory.Guest(owner).Charge(mib / 2)
		}
		for range lentConnections { // which are not refused while there is any memory
			l.Open(address("a"))
		}
		c := conn(l, "a")
		f, _ := c.Conn.(*fed)
		f.texts = []string{"GET / HTTP/1.1\r\n", "Host: x\r\n"}
		for range 2 {
			if _, err := c.Read(make([]byte, 100)); !errors.Is(err, errRefused) {
				t.Errorf("it reads %v", err)
			}
		}
		if got := bodyOf(t, f.written.String()); got != want {
			t.Errorf("while %s holds much a gets %q", owner, got)
		}
	}
}

func TestBelowTLSWhoIsRefusedIsToldNothing(t *testing.T) {
	memory := budget.New(mib)
	memory.Guest("a").Charge(mib)
	below := &fed{from: "a", texts: []string{"x"}}
	c := &Conn{Conn: below, ledger: New(memory, host, func(net.Addr, error) {}), secure: true, cost: tlsCost}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, errRefused) || below.written.Len() > 0 {
		t.Errorf("%v, and %q is written", err, below.written.String())
	}
}

// piped is a connection whose client says nothing.
type piped struct {
	net.Conn
	from address
}

func (p piped) RemoteAddr() net.Addr { return p.from }

// Nobody is charged for who was refused and has not left: of each address, and of all, a few stay for as long as they
// may, and who came first makes room for the next one.
func TestThoseWhoAreRefusedMakeRoomForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(64 * mib)
		l := New(memory, host, func(net.Addr, error) {})
		memory.Guest("others").Charge(128 * mib)
		var left atomic.Int32
		come := func(from string, n int) {
			t.Helper()
			for range n {
				ours, theirs := net.Pipe()
				t.Cleanup(func() { _ = theirs.Close() })
				c := l.Conn(piped{ours, address(from)}, nil)
				go func() {
					_, _ = c.Read(make([]byte, 1))
					_ = c.Close()
					left.Add(1)
				}()
				synctest.Wait()
			}
		}
		there := func(what string, want int) {
			t.Helper()
			l.mu.Lock()
			got := len(l.turned.who)
			l.mu.Unlock()
			if got != want {
				t.Errorf("%s: %d are there, want %d", what, got, want)
			}
		}
		come("a", 100)
		there("of one address", turnedOfOne)
		come("b", 1)
		there("beside another one", turnedOfOne+1)
		if got := left.Load(); got != 100-turnedOfOne {
			t.Errorf("%d of the first address have left", got)
		}
		for i := range 100 {
			come(strconv.Itoa(i), 1)
		}
		there("of many addresses", 64*mib/turnedPart/tlsCost)
		time.Sleep(turnTimeout)
		synctest.Wait()
		there("when nobody may stay any longer", 0)
		if got := left.Load(); got != 201 {
			t.Errorf("%d have left", got)
		}
	})
}

func TestWithoutALedgerNothingIsCharged(t *testing.T) {
	l := New(nil, host, nil)
	f := &fed{}
	if l != nil || l.Conn(f, nil) != net.Conn(f) || !l.Open(address("a")).Hold(1<<40) {
		t.Error("something is charged")
	}
	l.Open(address("a")).Close()
	c := Of(f)
	c.Begun(1)
	c.Body(1)
	c.Greeted()
	c.Note(http.StateIdle)
}
