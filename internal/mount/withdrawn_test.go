package mount

import (
	"net/http"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
	"github.com/mcpbridge/bridge/internal/resource"
)

// The rooms that serve clients hear of withdrawn keys from what checks tokens, where one does.
func TestTheEndpointTellsOfWithdrawnKeys(t *testing.T) {
	s := issuer.NewSigner(t)
	checks := resource.Check(resource.CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Issuers: &http.Client{Transport: &http.Transport{}}, Log: zerolog.Nop()})
	t.Cleanup(checks.Close)
	opt := Options{Resource: checks}
	opt.guard()
	if withdrawn := opt.Legacy.Withdrawn; withdrawn == nil || withdrawn("Bearer "+s.Sign(s.Claims("ada", "https://tools.example.com/mcp")))() {
		t.Error("nobody tells, or a key is gone that is published")
	}
}
