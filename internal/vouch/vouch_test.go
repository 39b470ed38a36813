package vouch

import (
	"fmt"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

const alice, mallory = "Bearer alice", "Bearer mallory"

func tool(name string) Thing { return Of(mcp.MethodToolsCall, []byte(name)) }

func expect(t *testing.T, c *Credentials, what, authorization string, want bool) {
	t.Helper()
	if got := c.Vouched(authorization); got != want {
		t.Errorf("%s: %v", what, got)
	}
}

func TestAServerVouchesForWhomItAcceptsWhereItRefusesOthers(t *testing.T) {
	c := New()
	c.Accepted(alice, tool("guarded"))
	expect(t, c, "by a server that may accept anybody", alice, false)
	c.Refused("Bearer wrong", tool("guarded"))
	c.Accepted(alice, tool("guarded"))
	expect(t, c, "once it has refused somebody", alice, true)
	c.Accepted("", tool("guarded"))
	expect(t, c, "who brings nothing", "", false)
	c.Accepted(mallory, Of(mcp.MethodDiscover, nil))
	expect(t, c, "what everybody may", mallory, false)
	c.Refused("Bearer wrong", Of("vendor/something", nil))
	c.Accepted(mallory, Of("vendor/something", nil))
	expect(t, c, "what is of no known kind", mallory, false)
	c.Refused(alice, tool("guarded"))
	expect(t, c, "whom it no longer accepts", alice, false)
}

// Servers have tools for everybody beside those that they guard.
func TestWhatEverybodyMayVouchesForNobodyBesideWhatIsGuarded(t *testing.T) {
	for _, refused := range []Thing{tool("guarded"), Of(mcp.MethodToolsList, nil), Of(mcp.MethodResourcesRead, []byte("public"))} {
		c := New()
		c.Refused("Bearer wrong", refused)
		for _, public := range []Thing{tool("public"), Of(mcp.MethodPromptsGet, []byte("guarded")), Of(mcp.MethodPromptsList, nil)} {
			c.Accepted(mallory, public)
			expect(t, c, public.Method, mallory, false)
		}
		c.Accepted(alice, refused)
		expect(t, c, refused.Method, alice, true)
	}
}

// A server that takes the second word of the header would vouch for one token as often as
// somebody finds other words to put after it.
func TestOneTokenIsNotVouchedForUnderManyHeaders(t *testing.T) {
	c := New()
	c.Refused("Bearer wrong", tool("guarded"))
	for _, header := range []string{mallory + " 1", mallory + "\t2", "Bearer  mallory", mallory + " "} {
		c.Accepted(header, tool("guarded"))
		expect(t, c, header, header, false)
	}
	c.Accepted(mallory, tool("guarded"))
	expect(t, c, "the token alone", mallory, true)
}

func TestAServerThatOnlyWantsSomeCredentialsVouchesForNobody(t *testing.T) {
	c := New()
	c.Refused("", tool("guarded"))
	c.Accepted(mallory, tool("guarded"))
	expect(t, c, "with whatever it likes", mallory, false)
}

// What a server is, it tells once for all: of those who call its tools later it need not have
// been asked again.
func TestWhoMustNotKnowAServerGetsNothingOfIt(t *testing.T) {
	for _, refused := range []string{mcp.MethodDiscover, mcp.MethodInitialize} {
		c := New()
		c.Refused("Bearer wrong", Of(refused, nil))
		c.Accepted(alice, tool("any"))
		expect(t, c, refused, alice, true)
		c = New()
		c.Refused("Bearer wrong", tool("any"))
		c.Accepted(alice, Of(refused, nil))
		expect(t, c, "not the other way round: "+refused, alice, false)
	}
}

func TestCredentialsAreForgottenInTime(t *testing.T) {
	c := New()
	c.Refused("Bearer wrong", tool("guarded"))
	for i := range 5 * credentials {
		c.Accepted(fmt.Sprint(i), tool("guarded"))
		if n := len(c.accepted.newer) + len(c.accepted.earlier); n > 2*credentials {
			t.Fatalf("%d are remembered", n)
		}
	}
	expect(t, c, "one of those accepted last", fmt.Sprint(5*credentials-1-credentials), true)
}

// Whoever likes is refused as many things as they like.
func TestRefusalsOfMadeUpThingsDoNotHideWhatIsGuarded(t *testing.T) {
	c := New()
	c.Refused("Bearer wrong", tool("guarded"))
	c.Accepted(alice, tool("guarded"))
	for i := range 5 * things {
		c.Refused(mallory, tool(fmt.Sprint(i)))
		if n := len(c.refused.newer) + len(c.refused.earlier); n > 2*things {
			t.Fatalf("%d are remembered", n)
		}
	}
	c.Accepted("Bearer bob", tool("guarded"))
	expect(t, c, "for what somebody was accepted for", "Bearer bob", true)
}

func TestLearningTakesNoMemoryOfACall(t *testing.T) {
	c := New()
	c.Refused("Bearer wrong", tool("guarded"))
	guarded, public := tool("guarded"), tool("public")
	if n := testing.AllocsPerRun(100, func() {
		c.Accepted(alice, guarded)
		c.Accepted(alice, public)
		c.Vouched(alice)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNobodyIsVouchedForByNobody(t *testing.T) {
	var c *Credentials
	c.Accepted(alice, tool("any"))
	c.Refused(alice, tool("any"))
	expect(t, c, "by the nil Credentials", alice, false)
}

// Who is refused to know a server may yet have a tool for everybody.
func TestWhoIsSingledOutIsAcceptedForTheVeryThing(t *testing.T) {
	c := New()
	c.Refused("Bearer wrong", tool("guarded"))
	c.Accepted(mallory, tool("public"))
	c.Accepted(alice, tool("guarded"))
	if c.Singled(mallory) || !c.Singled(alice) {
		t.Error("by what everybody gets, or not by what others were refused")
	}
	c.Refused("Bearer wrong", Of(mcp.MethodDiscover, nil))
	c.Accepted(mallory, tool("public"))
	if !c.Vouched(mallory) || c.Singled(mallory) {
		t.Error("where the server keeps to itself what it is")
	}
}
