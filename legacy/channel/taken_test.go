package channel

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
)

// busyServer is a relayed server, which takes its messages in order, and the second one only when it has
// done with what is before it, as one whose pipe is full.
type busyServer struct {
	downstream.Conversation
	takes  time.Duration
	result string
	closed chan struct{}
}

func (*busyServer) Version() mcp.Version { return mcp.V20241105 }
func (*busyServer) Orderly() bool        { return true }
func (s *busyServer) Close(error)        { close(s.closed) }
func (s *busyServer) Serve(_ context.Context, _ downstream.Caller, req downstream.Request, out downstream.Reply) {
	if req.Method == "second" {
		select {
		case <-time.After(s.takes):
		case <-s.closed:
		}
	}
	out.Finish(downstream.Result(req.ID, []byte(s.result)))
}

// leaving is a client that makes three calls and closes its input. read is how it reads what it gets. It returns how long
// the connection lasted from then on.
func (s *busyServer) leaving(t *testing.T, read func(io.Reader) int) (answers int, took time.Duration, err error) {
	t.Helper()
	s.closed = make(chan struct{})
	in, write := io.Pipe()
	from, out := io.Pipe()
	b := &opensAt{open: make(chan struct{}), conv: s}
	close(b.open)
	done := make(chan error, 1)
	go func() {
		done <- Serve(t.Context(), in, out, Options{MaxBody: 1 << 20, MaxPending: 64, MaxBatch: 8, MaxInFlight: func() int { return 64 }}, b)
		_ = out.Close()
	}()
	_, _ = io.WriteString(write, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n")
	_, _ = bufio.NewReaderSize(from, 16).ReadString('\n')
	synctest.Wait()
	began := time.Now()
	go func() {
		for _, method := range []string{"first", "second", "third"} {
			_, _ = io.WriteString(write, `{"jsonrpc":"2.0","id":"`+method+`","method":"`+method+`"}`+"\n")
		}
		_ = write.Close()
	}()
	answers = read(from)
	err = <-done
	_ = from.Close()
	return answers, time.Since(began), err
}

// inTime reads so many bytes at a time, with a pause after each.
func inTime(size int, pause time.Duration) func(io.Reader) int {
	return func(from io.Reader) (answers int) {
		buf := make([]byte, size)
		for {
			n, err := from.Read(buf)
			answers += strings.Count(string(buf[:n]), "\n")
			if err != nil {
				return answers
			}
			time.Sleep(pause)
		}
	}
}

// Which side moves nothing shows: a server that works at a call before it takes the rest of an input that has ended is no
// client that does not read.
func TestAClientOfASlowServerIsNotTakenForOneThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{takes: 5 * time.Minute, result: `{}`}
		if answers, took, err := s.leaving(t, inTime(1<<10, 0)); err != nil || answers != 3 {
			t.Errorf("a client that reads everything gets %d of 3 answers, and after %v %v", answers, took, err)
		}
	})
}

// Of a long answer little is read at a time.
func TestAClientThatReadsALittleAtATimeReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{result: `{"x":"` + strings.Repeat("x", 100<<10) + `"}`}
		if answers, took, err := s.leaving(t, inTime(4<<10, 8*time.Second)); answers != 3 || err != nil {
			t.Errorf("a client that reads 4 KiB in 8 s gets %d of 3 answers, and after %v %v", answers, took, err)
		}
	})
}

// Nor does one that takes nothing at all hold up the end for ever.
func TestAServerThatTakesNothingCannotHoldUpTheEndForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busyServer{takes: 24 * time.Hour, result: `{}`}
		answers, took, err := s.leaving(t, inTime(1<<10, 0))
		if !errors.Is(err, errUntaken) || took > lastTake+2*lastMove || answers < 1 {
			t.Errorf("with a server that takes nothing the end comes after %v: %v, %d answers", took, err, answers)
		}
	})
}
