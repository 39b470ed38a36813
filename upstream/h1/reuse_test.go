package h1

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/carriertest"
)

// carrier is what all carriers have in common, of a Client.
func carrier(dial carriertest.Dial) carriertest.Carrier {
	c := New(Options{IdleTimeout: carriertest.Idle, Dial: dial})
	send := func(ctx context.Context, again bool) error {
		r := request("{}")
		r.Resend = again
		resp, err := c.Do(ctx, r)
		if err == nil {
			_, err = io.ReadAll(resp)
			resp.Finish()
		}
		return err
	}
	return carriertest.Carrier{
		Call: func(ctx context.Context) error { return send(ctx, false) },
		Ask:  func(ctx context.Context) error { return send(ctx, true) },
		Kept: func() int {
			_, idle := counts(c)
			return idle
		},
		Close: c.Close,
	}
}

func TestAnAnnouncedKeepAliveIsHeeded(t *testing.T)              { carriertest.KeepAlive(t, carrier) }
func TestOneLossRetiresTheIdleConnectionsOfThatAge(t *testing.T) { carriertest.OneLoss(t, carrier) }
func TestAQuestionThatIsNotAnsweredRetiresIdleConnections(t *testing.T) {
	carriertest.Question(t, carrier)
}
func TestACancelRetiresNoOtherConnection(t *testing.T) { carriertest.Cancel(t, carrier) }

// What is announced holds until the next response, which may say nothing.
func TestAKeepAliveOfAnEarlierResponseIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		c := New(Options{IdleTimeout: carriertest.Idle, Dial: carriertest.Pipes(t, &dials, func(_ int32, nc net.Conn, br *bufio.Reader) {
			for header := "Keep-Alive: timeout=5\r\n"; readRequest(br); header = "" {
				_, _ = io.WriteString(nc, "HTTP/1.1 200 OK\r\n"+header+"Content-Length: 2\r\n\r\nok")
			}
		})})
		for _, gap := range []time.Duration{0, time.Second, 30 * time.Second} {
			time.Sleep(gap)
			fetch(t, c, request("{}"))
		}
		if dials.Load() != 1 {
			t.Errorf("%d connections", dials.Load())
		}
		c.Close()
		synctest.Wait()
	})
}
