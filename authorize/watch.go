package authorize

import "errors"

// Step is a part of getting tokens that can succeed or fail on its own.
type Step string

// The steps.
const (
	StepDiscovery    Step = "discovery"    // finding the authorization server
	StepRegistration Step = "registration" // making the bridge known to it
	StepSignIn       Step = "sign_in"      // all that follows a refusal of the server, a person included
	StepToken        Step = "token"        // the token endpoint, for a first token
	StepRefresh      Step = "refresh"      // the token endpoint, for the next one
	StepExchange     Step = "exchange"     // the token endpoint, for the token of a client
)

// Outcome is what came of a step.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeRefused     Outcome = "refused"     // somebody said no, or what they said cannot be used
	OutcomeUnavailable Outcome = "unavailable" // it may go better later
	OutcomeExpired     Outcome = "expired"     // nobody signed in in time
)

// tell says what came of a step to whoever wants to know.
func (a *Agent) tell(step Step, err error) {
	if a.opt.Watch != nil {
		a.opt.Watch(step, outcomeOf(err))
	}
}

// errNobody says that no person came.
var errNobody = errors.New("nobody signed in")

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return OutcomeOK
	case errors.Is(err, errNobody):
		return OutcomeExpired
	case refusedToken("", err).Passing:
		return OutcomeUnavailable
	}
	return OutcomeRefused
}

// stepOf says which step a request to the token endpoint is.
func stepOf(grant string) Step {
	switch grant {
	case grantRefresh:
		return StepRefresh
	case grantExchange:
		return StepExchange
	}
	return StepToken
}
