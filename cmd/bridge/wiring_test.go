package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
)

// With 4096 turns and 1024 descriptors one client took every descriptor with slow calls.
func TestRequestsAtServersLeaveFileDescriptors(t *testing.T) {
	for _, tc := range []struct {
		asked, descriptors, servers, want int
	}{
		{4096, 1024, 1, 341},
		{4096, 1024, 3, 113},
		{100, 1024, 1, 100},
		{4096, 12288, 1, 4096},
		{4096, math.MaxInt, 1, 4096}, // nobody counts them
		{4096, 2, 1, 1},
		{4096, 64, 100, 1},
	} {
		var log bytes.Buffer
		m := &config.Mount{}
		m.Limits.Concurrency = tc.asked
		if got := atServer(m, tc.descriptors, tc.servers, zerolog.New(&log)); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
		if warned := strings.Contains(log.String(), "limits.concurrency"); warned != (tc.want < tc.asked) {
			t.Errorf("%+v: the log says %q", tc, log.String())
		}
	}
}

func TestIdleConnectionsLeaveFileDescriptors(t *testing.T) {
	for _, tc := range []struct{ descriptors, servers, want int }{
		{1024, 1, 42}, {1024, 3, 14}, {65536, 1, 256}, {math.MaxInt, 1, 256}, {64, 100, 1}, {1024, 0, 42},
	} {
		if got := idle(tc.descriptors, tc.servers); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// Commands have pipes, however many requests there are.
func TestOnlyServersOverHTTPShareFileDescriptors(t *testing.T) {
	http := config.Mount{Upstream: "http://127.0.0.1:9000/mcp"}
	command := config.Mount{Command: []string{"server"}}
	if n := servers(&config.Config{Upstreams: []config.Mount{http, command, http}}); n != 2 {
		t.Errorf("%d share them", n)
	}
	if n := servers(&config.Config{Mount: command}); n != 0 {
		t.Errorf("%d share them", n)
	}
}

// A bridge that others reach takes any host name unless some are listed, which nobody would guess.
func TestThatAnyHostIsTakenIsSaid_E11(t *testing.T) {
	for _, tc := range []struct {
		listen string
		hosts  []string
		said   bool
	}{
		{":8080", nil, true}, {"0.0.0.0:8080", nil, true},
		{":8080", []string{"bridge.example.com"}, false}, {":8080", []string{"*"}, false},
		{"127.0.0.1:8080", nil, false}, {"unix:/run/bridge.sock", nil, false},
	} {
		var out bytes.Buffer
		log := zerolog.New(&out)
		noteHosts(&config.Config{Listen: tc.listen, AllowedHosts: tc.hosts}, &log)
		if said := strings.Contains(out.String(), "allowed-hosts"); said != tc.said {
			t.Errorf("%s with %q: the log says %q", tc.listen, tc.hosts, out.String())
		}
	}
}
