package edge

import (
	"context"
	"time"
)

const (
	handshake = 20 * time.Millisecond // which those may take to get in line who have begun to connect
	lineLook  = 2 * time.Millisecond
	lineLimit = time.Second // for those that wait to be accepted

	// lastRequests is how long those who have just connected may take to send what they
	// have connected for, and those whose stream has just ended what they had queued for
	// its connection: hardly anybody connects first and thinks then.
	lastRequests = 100 * time.Millisecond
)

// Leave has those who use the listener go elsewhere before Shutdown, without a request
// lost. For as long as linger, or until ctx ends, everybody is served as ever; the handler
// is to end each connection with its next response, so that hardly one is left on which a
// request may come just as it is closed. Then the listener is closed, when nobody waits in
// line, and nobody gets there any more: the kernel breaks connections that were not accepted, and a balancer that has sent a
// request on one does not know what came of it. Then endStreams is called: whoever has one comes
// back elsewhere, and the connection of each is free, and may be about to be used.
func (e *Edge) Leave(ctx context.Context, linger time.Duration, endStreams func()) {
	sleep(ctx, linger)
	_ = overhear(e.crowd.Listener)
	for until, quiet := time.Now().Add(lineLimit), time.Now().Add(handshake); time.Now().Before(quiet) && time.Now().Before(until); {
		sleep(ctx, lineLook)
		if inLine(e.crowd.Listener) > 0 {
			quiet = time.Now().Add(handshake)
		}
	}
	_ = e.listener.Close()
	endStreams()
	sleep(ctx, lastRequests)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
