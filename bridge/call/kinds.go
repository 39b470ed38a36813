package call

import (
	"math"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/observe"
)

// Kind is one of the things that servers ask clients for.
type Kind int

// The kinds.
const (
	Elicitation Kind = iota
	Sampling
	Roots
	Kinds // how many there are
)

// CapabilityOf names the capability of each kind.
var CapabilityOf = [Kinds]string{"elicitation", "sampling", "roots"}

// KindOf returns the kind of a method.
func KindOf(method string) Kind {
	switch method {
	case mcp.MethodElicitationCreate:
		return Elicitation
	case mcp.MethodSamplingCreateMessage:
		return Sampling
	}
	return Roots
}

func questionKind(in *mrtr.Input) observe.Kind {
	switch {
	case KindOf(in.Method) == Sampling:
		return observe.Sampling
	case KindOf(in.Method) == Roots:
		return observe.Roots
	case in.Mode() == "url":
		return observe.URL
	}
	return observe.Form
}

// How long a kind is switched off: for good when the client said that it has no such
// method, else for so many times what it was given to answer.
const (
	ForGood  = time.Duration(math.MaxInt64)
	restOver = 6
)
