package upstream

import (
	"context"
	"testing"

	"github.com/mcpbridge/bridge/negotiate"
)

// asked is a Caller that diagnoses.
type asked struct{ Caller }

func (asked) Signs() Signs { return Signs{} }

func (asked) LegacyOffer(context.Context, *Call) negotiate.Offer { return negotiate.Offer{} }

// wrapped is a Caller of another package around one that does.
type wrapped struct{ Caller }

func (w wrapped) Unwrap() Caller { return w.Caller }

func TestAWrappedCallerIsStillDiagnosed(t *testing.T) {
	c := asked{}
	if diagnose(wrapped{wrapped{c}}) != diagnoser(c) || diagnose(nil) != nil {
		t.Fatal("the caller inside is not found")
	}
}
