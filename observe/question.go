package observe

import (
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// Kind is what a question asks for, in the words of who watches: elicitations are of two
// kinds here.
type Kind uint8

// The kinds of questions.
const (
	Form Kind = iota
	URL
	Sampling
	Roots
	Kinds // how many there are; as a kind, one that has no word
)

var kinds = [Kinds]struct {
	name string
	asks mcp.InputKind
}{
	Form:     {"form", mcp.Elicitation},
	URL:      {"url", mcp.Elicitation},
	Sampling: {"sampling", mcp.Sampling},
	Roots:    {"roots", mcp.Roots},
}

// KindOf returns the kind of a question: the one whose name is its mode, else the first of
// its method; Kinds where there is none.
func KindOf(method, mode string) Kind {
	found := Kinds
	for k := range kinds {
		switch of := &kinds[k]; {
		case of.asks.Method() != method:
		case of.name == mode:
			return Kind(k)
		case found == Kinds:
			found = Kind(k)
		}
	}
	return found
}

// String returns a stable name, fit for logs and metric labels.
func (k Kind) String() string {
	if k < Kinds {
		return kinds[k].name
	}
	return "unknown"
}

// Method is that of the questions, "" for what has no word.
func (k Kind) Method() string {
	if k < Kinds {
		return kinds[k].asks.Method()
	}
	return ""
}

// AsksPerson reports whether a person answers, and not the client's program.
func (k Kind) AsksPerson() bool { return k < Kinds && kinds[k].asks.AsksPerson() }

// Outcome is what became of a question.
type Outcome uint8

// The outcomes of a question.
const (
	Accepted       Outcome = iota // an answer that goes up
	Declined                      // the person said no
	Dismissed                     // the person did not decide
	ClientError                   // the client answered with an error, or nonsense
	Unanswered                    // the client did not answer in time
	Withdrawn                     // nobody wanted the answer any more
	NotDeclared                   // not asked: the client did not declare that it can be
	NotExpressible                // not asked: the client's revision has no words for it
	Outcomes                      // how many there are
)

var outcomeNames = [Outcomes]string{
	"accept", "decline", "cancel", "client_error", "timeout", "withdrawn", "not_declared", "not_expressible",
}

// String returns a stable name, fit for logs and metric labels.
func (o Outcome) String() string {
	if o < Outcomes {
		return outcomeNames[o]
	}
	return "unknown"
}

// Question is a question of the server to a client that has ended.
type Question struct {
	Kind      Kind
	Version   mcp.Version // of the session
	Outcome   Outcome
	Elsewhere bool          // somebody else was asked: a person on a page, a model, the configuration
	Took      time.Duration // 0 when the client was not asked
	// Transport and HTTP are those of the call that it was asked for.
	Transport Transport
	HTTP      HTTP
}
