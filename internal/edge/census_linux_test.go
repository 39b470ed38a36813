package edge

import (
	"testing"
)

// One address may have seven eighths of the places, whatever its connections do; the rest is for
// others.
func TestTheLastDescriptorsAreForOthers(t *testing.T) {
	fewDescriptors(t, 512)
	e, log := serve(t, from, Options{})
	fill := func(most int, ask bool) (held int) {
		for held < most {
			conn := dialFrom(t, e, greedy, "")
			if ask && get(conn, "/") != "HTTP/1.1 200 OK" {
				return held
			}
			held++
		}
		return held
	}
	silent, held := fill(60, false), fill(400, true)
	if silent+held < 130 || silent+held > 256 {
		t.Errorf("one address has %d connections", silent+held)
	}
	log.expect(t, "which has an eighth or more")
	for range 10 {
		if got := get(dialFrom(t, e, modest, ""), "/"); got != "HTTP/1.1 200 OK" {
			t.Errorf("somebody else gets %q", got)
		}
	}
	if got := get(dialFrom(t, e, greedy, ""), "/"); got != "" {
		t.Errorf("one more of that address gets %q", got)
	}
}

// Who stands for many may have all places.
func TestATrustedProxyHasTheLastDescriptors(t *testing.T) {
	fewDescriptors(t, 512)
	e, log := serve(t, from, Options{Proxies: trusting([]string{greedy + "/32"})})
	for range 400 {
		if got := get(dialFrom(t, e, greedy, ""), "/"); got != "HTTP/1.1 200 OK" {
			break
		}
	}
	log.expect(t, "newcomers are answered 503")
}
