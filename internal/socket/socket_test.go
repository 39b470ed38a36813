package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pairs are the kinds of connections, each with both of its ends.
var pairs = map[string]func(*testing.T) (a, b net.Conn){
	"tcp":  func(t *testing.T) (a, b net.Conn) { return connected(t, "tcp", "127.0.0.1:0") },
	"unix": func(t *testing.T) (a, b net.Conn) { return connected(t, "unix", filepath.Join(t.TempDir(), "s")) },
	"pipe": func(t *testing.T) (a, b net.Conn) {
		a, b = net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		return a, b
	},
}

func connected(t *testing.T, network, address string) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// each runs a test over each kind of connection.
func each(t *testing.T, kinds []string, test func(t *testing.T, a, b net.Conn)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			a, b := pairs[kind](t)
			test(t, a, b)
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	each(t, []string{"tcp", "unix", "pipe"}, func(t *testing.T, a, b net.Conn) {
		from, to := New(a), New(b)
		random := rand.New(rand.NewPCG(1, 2))
		var sent bytes.Buffer
		piece := func() []byte {
			sizes := [...]int{0, 0, 1, 100, 4 << 10, most/2 + 1, most + 1} // the socket's buffer takes some of it at once
			p := make([]byte, sizes[random.IntN(len(sizes))])
			for i := range p {
				p[i] = byte(random.Uint32())
			}
			sent.Write(p)
			return p
		}
		writes := make([][mostPieces][]byte, 100)
		for i := range writes {
			writes[i] = [...][]byte{piece(), piece(), piece()}
		}
		failed := make(chan error, 1)
		go func() {
			defer a.Close()
			for _, w := range writes {
				size := len(w[0]) + len(w[1]) + len(w[2])
				if n, err := from.WritePieces(w); n != size || err != nil {
					failed <- errors.Join(errors.New("a write that is not whole"), err)
					return
				}
			}
			failed <- nil
		}()
		var got bytes.Buffer
		for buf := make([]byte, 2*most); ; {
			n, err := to.Read(buf[:1+random.IntN(len(buf))])
			if got.Write(buf[:n]); err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), sent.Bytes()) {
			t.Errorf("%d bytes came of %d, or others", got.Len(), sent.Len())
		}
	})
}

// What went wrong is told as net tells it: the rooms above look for these errors.
func TestErrorsAreThoseOfNet(t *testing.T) {
	sockets := []string{"tcp", "unix"}
	tests := map[string]struct {
		prepare func(a, b net.Conn)
		write   bool
		is      error
		says    string
	}{
		"end":               {func(_, b net.Conn) { b.Close() }, false, io.EOF, "EOF"},
		"closed, reading":   {func(a, _ net.Conn) { a.Close() }, false, net.ErrClosed, "read "},
		"closed, writing":   {func(a, _ net.Conn) { a.Close() }, true, net.ErrClosed, "write "},
		"too late, reading": {func(a, _ net.Conn) { _ = a.SetReadDeadline(time.Unix(1, 0)) }, false, os.ErrDeadlineExceeded, "read "},
		"too late, writing": {func(a, _ net.Conn) { _ = a.SetWriteDeadline(time.Unix(1, 0)) }, true, os.ErrDeadlineExceeded, "write "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			each(t, sockets, func(t *testing.T, a, b net.Conn) {
				tt.prepare(a, b)
				try := New(a).Read
				if tt.write {
					try = New(a).Write
				}
				n, err := try(make([]byte, 10))
				if n != 0 || !errors.Is(err, tt.is) || !strings.HasPrefix(err.Error(), tt.says) {
					t.Errorf("%d bytes and %v", n, err)
				}
			})
		})
	}
}

func TestAResetIsToldAsNetTellsIt(t *testing.T) {
	a, b := pairs["tcp"](t)
	c := New(a)
	if _, err := c.Write([]byte("not read")); err != nil {
		t.Fatal(err)
	}
	_ = b.(*net.TCPConn).SetLinger(0)
	b.Close()
	_, err := c.Read(make([]byte, 10))
	if !errors.Is(err, syscall.ECONNRESET) || !strings.HasPrefix(err.Error(), "read tcp 127.0.0.1:") {
		t.Errorf("reading: %v", err)
	}
	if _, err = c.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing: %v", err)
	}
}

// A write that the peer does not take ends when it should, and says how far it came.
func TestAWriteThatNobodyReadsEnds(t *testing.T) {
	each(t, []string{"tcp", "unix"}, func(t *testing.T, a, _ net.Conn) {
		c := New(a)
		_ = a.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		total := 0
		for {
			n, err := c.WritePieces([mostPieces][]byte{make([]byte, 1000), nil, make([]byte, 50_000)})
			total += n
			if err == nil {
				continue
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || n == 51_000 {
				t.Errorf("%d of 51000 bytes, then %v", n, err)
			}
			break
		}
		if total == 0 {
			t.Error("nothing was written")
		}
	})
}

func TestAClosedConnectionEndsAReadThatWaits(t *testing.T) {
	each(t, []string{"tcp", "unix", "pipe"}, func(t *testing.T, a, _ net.Conn) {
		c, ended := New(a), make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		_ = c.Close()
		if err := <-ended; err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the read ended with %v", err)
		}
	})
}

func TestAllocationBudget(t *testing.T) {
	each(t, []string{"tcp", "unix"}, func(t *testing.T, a, b net.Conn) {
		from, to := New(a), New(b)
		pieces, buf := [mostPieces][]byte{[]byte("head"), []byte("body"), []byte("tail")}, make([]byte, 100)
		got := testing.AllocsPerRun(100, func() {
			if _, err := from.WritePieces(pieces); err != nil {
				t.Fatal(err)
			}
			if _, err := to.Read(buf); err != nil {
				t.Fatal(err)
			}
		})
		if got > 0 {
			t.Errorf("%v allocations", got)
		}
	})
}

func TestPeekTellsWhatHasComeAndLeavesIt(t *testing.T) {
	each(t, []string{"tcp", "unix"}, func(t *testing.T, a, b net.Conn) {
		c, buf := New(a), make([]byte, 4)
		if n, open := c.Peek(buf); n != 0 || !open {
			t.Errorf("%d bytes, open %v, of nothing", n, open)
		}
		_, _ = b.Write([]byte("ab"))
		for range 2 { // what was written to a neighbour is there
			if n, open := c.Peek(buf); string(buf[:n]) != "ab" || !open {
				t.Errorf("%q, open %v", buf[:n], open)
			}
		}
		if n, err := c.Read(buf); n != 2 || err != nil {
			t.Errorf("%d bytes and %v afterwards", n, err)
		}
		b.Close()
		if _, open := c.Peek(buf); open {
			t.Error("it is open at its end")
		}
	})
	a, _ := pairs["pipe"](t)
	if c := New(a); c.Peekable() {
		t.Error("a pipe can be looked at")
	}
}

func TestManyMayWrite(t *testing.T) {
	each(t, []string{"tcp", "pipe"}, func(t *testing.T, a, b net.Conn) {
		const writers, writes = 4, 50
		c := New(a)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				line := bytes.Repeat([]byte{'a' + byte(w)}, 999)
				for range writes {
					_, _ = c.WritePieces([mostPieces][]byte{line[:500], nil, line[500:]})
				}
			})
		}
		go func() { all.Wait(); a.Close() }()
		got, err := io.ReadAll(b)
		if err != nil || len(got) != writers*writes*999 {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		for line := range slices.Chunk(got, 999) {
			if line[0] != line[500] || line[0] != line[998] {
				t.Fatal("two writes are mixed")
			}
		}
	})
}

// aside reads in a way of its own, though it offers the descriptor.
type aside struct {
	*net.TCPConn
	reads int
}

func (a *aside) Read(p []byte) (int, error) {
	a.reads++
	return a.TCPConn.Read(p)
}

func TestWhatReadsInAWayOfItsOwnDoes(t *testing.T) {
	a, b := pairs["tcp"](t)
	_, _ = b.Write([]byte("x"))
	around := &aside{TCPConn: a.(*net.TCPConn)}
	if n, err := New(around).Read(make([]byte, 2)); n != 1 || err != nil || around.reads != 1 {
		t.Errorf("%d bytes, %v, by %d reads of its own", n, err, around.reads)
	}
}
