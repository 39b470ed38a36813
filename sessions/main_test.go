package sessions

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape is a carrier that writes down what happens to it.
type tape struct {
	mu      sync.Mutex
	written []string // by Write
	flushed []string // what a client would have seen
	ended   bool
	err     error
	fail    bool
	block   chan struct{} // when set, Flush waits for it
	inside  chan struct{} // told when a Flush waits
}

func (c *tape) Write(stream, seq uint64, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if data == nil {
		data = []byte("mark")
	}
	c.written = append(c.written, fmt.Sprintf("%d-%d:%s", stream, seq, data))
}

func (c *tape) Flush(bool) error {
	if c.block != nil {
		c.inside <- struct{}{}
		<-c.block
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail {
		return errors.New("broken pipe")
	}
	c.flushed = append(c.flushed, c.written...)
	c.written = nil
	return nil
}

func (c *tape) Drain() error { return nil }

func (c *tape) Ping() error {
	c.Write(0, 0, []byte("ping"))
	return c.Flush(false)
}

func (c *tape) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.err = true, err
}

func (c *tape) state() ([]string, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.flushed...), c.ended, c.err
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s\n got %s\nwant %s", what, g, w)
	}
}

func ev(s string) []byte { return []byte(s) }
