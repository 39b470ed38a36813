package vouch

import (
	"fmt"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestAServerVouchesForWhomItAcceptsWhereItRefusesOthers(t *testing.T) {
	const alice, mallory = "Bearer alice", "Bearer mallory"
	c := New()
	is := func(what, authorization string, want bool) {
		t.Helper()
		if got := c.Vouched(authorization); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	c.Accepted(alice, Of(mcp.MethodToolsCall))
	is("by a server that may accept anybody", alice, false)
	c.Refused("", Of(mcp.MethodToolsCall))
	is("once it has refused somebody", alice, true)
	is("who brings nothing", "", false)
	c.Accepted(mallory, Of(mcp.MethodDiscover))
	is("what everybody may", mallory, false)
	c.Accepted(mallory, Of("vendor/anything"))
	c.Refused("", Of("vendor/something"))
	is("what is of no known kind", mallory, false)
	c.Refused(alice, Of(mcp.MethodToolsCall))
	is("whom it no longer accepts", alice, false)
}

// What a server is, it tells once for all: of those who call its tools later it need not have
// been asked again.
func TestWhoMustNotKnowAServerGetsNothingOfIt(t *testing.T) {
	for refused, accepted := range map[What]What{Discover: Calls, Lists: Reads, Opening: Session} {
		c := New()
		c.Refused("", refused)
		c.Accepted("Bearer a", accepted)
		if !c.Vouched("Bearer a") {
			t.Errorf("refused %b, accepted %b", refused, accepted)
		}
		c = New()
		c.Refused("", accepted)
		c.Accepted("Bearer a", refused)
		if c.Vouched("Bearer a") {
			t.Errorf("refused %b, accepted %b", accepted, refused)
		}
	}
}

func TestCredentialsAreForgottenInTime(t *testing.T) {
	c := New()
	c.Refused("", Calls)
	for i := range 5 * remembered {
		c.Accepted(fmt.Sprint(i), Calls)
		if n := len(c.newer) + len(c.earlier); n > 2*remembered {
			t.Fatalf("%d are remembered", n)
		}
	}
	if !c.Vouched(fmt.Sprint(5*remembered - 1 - remembered)) {
		t.Error("one of those accepted last is forgotten")
	}
}

func TestNobodyIsVouchedForByNobody(t *testing.T) {
	var c *Credentials
	c.Accepted("Bearer a", Calls)
	c.Refused("Bearer a", Calls)
	if c.Vouched("Bearer a") {
		t.Error("vouched for")
	}
}
