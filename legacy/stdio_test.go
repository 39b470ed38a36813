package legacy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/channel"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
)

// line is a stdio client.
type line struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *io.PipeReader
	read chan string
	done chan error
	stop context.CancelFunc
}

func serveStdio(t *testing.T, opt Options, b downstream.Backend) *line {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	l := &line{t: t, in: inW, out: outR, read: make(chan string, 256), done: make(chan error, 1), stop: cancel}
	go func() {
		l.done <- ServeStdio(ctx, inR, outW, opt, b)
		_ = outW.Close()
	}()
	go func() {
		defer close(l.read)
		buf, rest := make([]byte, 1<<16), ""
		for {
			n, err := outR.Read(buf)
			rest += string(buf[:n])
			for {
				msg, more, ok := strings.Cut(rest, "\n")
				if !ok {
					break
				}
				l.read <- msg
				rest = more
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = inW.Close()
		_ = outR.Close()
	})
	return l
}

func (l *line) send(msg string) {
	l.t.Helper()
	if _, err := io.WriteString(l.in, msg+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) next() string {
	l.t.Helper()
	msg, ok := <-l.read
	if !ok {
		l.t.Fatal("the output ended")
	}
	return msg
}

func (l *line) initialize(v mcp.Version) {
	l.t.Helper()
	l.send(initialize(v))
	want(l.t, "initialize", l.next(), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"`+string(v)+`"}}`)
}

func TestStdioServesOneMessagePerLine_E31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.send("\r\n\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\r")
		l.send(`{"jsonrpc":"2.0","id":1,"method":"chatty"}`)
		want(t, "interim", l.next(), note)
		want(t, "result", l.next(), `{"jsonrpc":"2.0","id":1,"result":{}}`)
		b.last().push.Push("k", []byte("{\n\"pushed\":1}"))
		want(t, "push without raw newline", l.next(), `{ "pushed":1}`)
		l.send(`{"jsonrpc":"2.0","id":"leg","result":{}}`)
		l.send(`{"jsonrpc":"2.0","id":2,"method":"whoami"}`)
		want(t, "interactive", l.next(), `{"jsonrpc":"2.0","id":2,"result":{"stateless":false,"interactive":true}}`)
		want(t, "notified", b.last().notified, []string{"notifications/initialized"})
		want(t, "answered", b.last().answered, []string{`"leg"`})
	})
}

func TestALineAboveTheLimitIsAnsweredByIDWhereverThatStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serveStdio(t, Options{MaxBody: 500}, newFake())
		l.initialize(mcp.V20250618)
		filler := `"params":{"x":"` + strings.Repeat("x", 1000) + `"}`
		for _, large := range []string{
			`{"jsonrpc":"2.0","id":"big","method":"echo",` + filler + `}`,
			`{"method":"echo",` + filler + `,"jsonrpc":"2.0","id":"big"}`, // as the TypeScript SDK writes it
		} {
			l.send(large)
			want(t, "refusal", l.next(), `{"jsonrpc":"2.0","id":"big","error":{"code":-32600,"message":"`+message.TooLarge(500)+`","data":{"bridge":{}}}}`)
		}
	})
}

func TestTheLogSaysWhyAMessageWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := serveStdio(t, Options{MaxBody: 300, Logger: zerolog.New(&log)}, newFake())
		l.initialize(mcp.V20250618)
		l.send(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 900) + `"}`)
		l.send(`{"jsonrpc":`)
		synctest.Wait()
		for _, why := range []string{message.TooLarge(300), "json: "} {
			if !strings.Contains(log.String(), why) {
				t.Errorf("no %q in %s", why, &log)
			}
		}
		if got := log.String(); strings.Contains(got, "xxx") || strings.Contains(got, "not JSON-RPC") {
			t.Errorf("log: %s", got)
		}
	})
}

func TestAResponseStaysBehindProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20250618)
		answered := func(interim string, before time.Duration) time.Duration {
			l.send(hold)
			k := <-b.held
			k.Send([]byte(interim))
			want(t, "interim", l.next(), interim)
			<-time.After(before)
			began := time.Now()
			go k.finish(`{}`)
			l.next()
			return time.Since(began)
		}
		progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
		want(t, "right after progress", answered(progress, 0), 10*time.Millisecond)
		want(t, "a little later", answered(progress, 2*time.Millisecond), 8*time.Millisecond)
		want(t, "much later", answered(progress, time.Second), time.Duration(0))
		want(t, "after something else", answered(note, 0), time.Duration(0))
		l.send(hold)
		k := <-b.held
		k.Send([]byte(progress))
		l.next()
		_ = l.in.Close()
		k.finish(`{}`) // by then there may be nobody to wait for
		<-l.done
	})
}

func TestStdioEndsEverythingAtEOF_A36(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.send(hold)
		<-b.held
		_ = l.in.Close()
		want(t, "returns", <-l.done, error(nil))
		want(t, "cause", b.last().cause(), channel.ErrDisconnected)
	})
}

func TestWhatTheInputBroughtIsStillAnswered(t *testing.T) {
	for _, late := range []time.Duration{time.Second - time.Millisecond, time.Second + time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			b := &slowBackend{newFake(), make(chan struct{})}
			l := serveStdio(t, Options{}, b)
			l.send(initialize(mcp.V20251125))
			l.send(hold)
			l.send(`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
			_ = l.in.Close()
			synctest.Wait()
			close(b.proceed)
			want(t, "initialize", l.next(), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
			want(t, "a quick one", l.next(), `{"jsonrpc":"2.0","id":2,"result":{}}`)
			k := <-b.held
			time.Sleep(late)
			k.finish(`{"slow":1}`)
			want(t, "returns", <-l.done, error(nil))
			_, answered := <-l.read
			want(t, "the slow one is answered", answered, late < time.Second)
		})
	}
}

func TestStdioEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		l.stop()
		want(t, "returns", <-l.done, context.Canceled)
	})
}

func TestStdioEndsWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake()
		l := serveStdio(t, Options{}, b)
		l.initialize(mcp.V20251125)
		_ = l.out.Close()
		l.send(ping)
		if err := <-l.done; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("err = %v", err)
		}
	})
}

// A client that reads nothing holds up neither the end of its session, which frees the server,
// nor that of its process. It had a second for each line by then.
func TestAClientThatDoesNotReadCannotHoldUpTheEnd(t *testing.T) {
	for name, end := range map[string]func(in io.Closer, stop func()){
		"stopped":               func(_ io.Closer, stop func()) { stop() },
		"the end of its input":  func(in io.Closer, _ func()) { _ = in.Close() },
		"the end, then stopped": func(in io.Closer, stop func()) { _ = in.Close(); stop() },
	} {
		synctest.Test(t, func(t *testing.T) {
			in, write := io.Pipe()
			read, out := io.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			b, done := newFake(), make(chan error, 1)
			go func() { done <- ServeStdio(ctx, in, out, Options{}, b) }()
			line := bufio.NewReader(read)
			for _, msg := range []string{initialize(mcp.V20251125), `{"jsonrpc":"2.0","id":1,"method":"chatty"}`} {
				_, _ = io.WriteString(write, msg+"\n")
				if _, err := line.ReadString('\n'); err != nil { // of the second there is more
					t.Fatal(err)
				}
			}
			synctest.Wait()
			end(write, stop)
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			if b.last().closed == nil {
				t.Errorf("%s: the session goes on", name)
			}
			_ = read.Close() // as the end of its process does
			_ = write.Close()
		})
	}
}

// Nor does one that has closed its input, and has left more there than can be taken while nothing of the answers is read.
func TestAClientThatDoesNotReadCannotHoldUpTheEndWithItsInput_A36(t *testing.T) {
	for name, reads := range map[string]bool{"reads nothing": false, "reads slowly": true} {
		synctest.Test(t, func(t *testing.T) {
			many := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("x", 300)+`"}`+"\n", 100)
			in, write := io.Pipe()
			read, out := io.Pipe()
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			b, done, began := newFake(), make(chan error, 1), time.Now()
			go func() {
				done <- ServeStdio(ctx, in, out, Options{}, b)
				_ = out.Close()
			}()
			lines, answers := bufio.NewReader(read), 0
			_, _ = io.WriteString(write, initialize(mcp.V20251125)+"\n")
			_, _ = lines.ReadString('\n')
			synctest.Wait() // nobody else writes then
			go func() { _, _ = io.WriteString(write, many); _ = write.Close() }()
			for ; reads; answers++ {
				if _, err := lines.ReadString('\n'); err != nil {
					break
				}
				time.Sleep(900 * time.Millisecond)
			}
			err := <-done
			if reads && (err != nil || answers != 100) || !reads && (err == nil || time.Since(began) > 20*time.Second) {
				t.Errorf("%s: %d answers, %v after %v", name, answers, err, time.Since(began))
			}
			if b.last().closed == nil {
				t.Errorf("%s: the session goes on", name)
			}
			_ = read.Close()
		})
	}
}
