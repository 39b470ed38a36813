package mcpbridge_test

import (
	"io"
	"strings"
	"testing"

	mcpbridge "github.com/mcpbridge/bridge"
)

func TestOptionsThatNameNoServerOrTwoAreRefused(t *testing.T) {
	for name, opt := range map[string]mcpbridge.Options{
		"none": {}, "two": {Upstream: "http://127.0.0.1:1", Command: []string{"x"}}, "no URL": {Upstream: "127.0.0.1:1"},
	} {
		if _, err := mcpbridge.New(opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestACommandIsServedOverStreams(t *testing.T) {
	b, err := mcpbridge.New(mcpbridge.Options{Command: []string{"no-such-program-anywhere"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var out strings.Builder
	if err := b.ServeStdio(t.Context(), io.Reader(strings.NewReader(initialize+"\n")), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "no such program") {
		t.Errorf("the client is told %s", out.String())
	}
}
