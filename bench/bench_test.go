package bench_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bench/client"
	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/proxy"
	"github.com/mcpbridge/bridge/bench/stub"
	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// throughProxy serves the legacy stub behind ReverseProxy.
func throughProxy(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(stub.NewLegacy(20))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(proxy.New(target))
	t.Cleanup(front.Close)
	return front.Listener.Addr().String()
}

// throughBridge serves the modern stub behind the bridge with its defaults.
func throughBridge(t testing.TB) string {
	t.Helper()
	modern := stub.NewModern(20)
	server := httptest.NewServer(modern)
	t.Cleanup(server.Close)
	caller, err := streamable.New(streamable.Options{URL: server.URL + stub.Path})
	if err != nil {
		t.Fatal(err)
	}
	b := bridge.New(bridge.Options{Upstream: caller, Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil)})
	handler := legacy.NewHTTP(legacy.Options{}, b)
	front := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		front.Close()
		b.Close()
		_ = caller.Close()
		if s := modern.Stats(); s.Violations != 0 {
			t.Errorf("the modern server refused %d requests, the first: %s", s.Violations, s.FirstViolation)
		}
	})
	return front.Listener.Addr().String()
}

// BenchmarkLegacyTraffic runs the same legacy calls through ReverseProxy, in
// front of a legacy server, and through the bridge, in front of a modern one.
// Allocations are those of client, proxy and server together.
func BenchmarkLegacyTraffic(b *testing.B) {
	fronts := []struct {
		name  string
		serve func(testing.TB) string
	}{{"ReverseProxy", throughProxy}, {"bridge", throughBridge}}
	for _, tool := range []string{stub.Echo, stub.Ask, stub.Ask3, stub.Steps, stub.Big} {
		for _, front := range fronts {
			b.Run(tool+"/"+front.name, func(b *testing.B) { traffic(b, front.serve(b), tool) })
		}
	}
}

func traffic(b *testing.B, addr, tool string) {
	var calls, failed atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		main, side := client.NewConn(addr, 4096), client.NewConn(addr, 4096)
		defer main.Close()
		defer side.Close()
		s := client.NewSession(addr, main, side)
		if err := s.Open(); err != nil {
			b.Error(err)
			return
		}
		for pb.Next() {
			if err := s.Call(tool, strconv.FormatInt(calls.Add(1), 16)); err != nil {
				failed.Add(1)
				main.Close()
			}
		}
	})
	// ReverseProxy breaks off a few calls when an answer starts before it has
	// finished with the request's body; the bridge must not.
	b.ReportMetric(float64(failed.Load())/float64(b.N), "errors/op")
}

// served measures for a moment, and for longer ones while a busy machine serves nothing.
func served(addr string, kind load.Kind) *load.Result {
	for window := 150 * time.Millisecond; ; window *= 4 {
		r := load.Closed{Addr: addr, Kind: kind, Clients: 8, Sessions: 2, Tools: 10, Window: window}.Run(context.Background())
		if r.Calls > 0 || r.Errors.Count() > 0 || window > 20*time.Second {
			return r
		}
	}
}

// TestNoCallIsLostThroughTheBridge runs every kind of traffic against a strict
// server; every answer is checked by the client, every request by the server.
func TestNoCallIsLostThroughTheBridge(t *testing.T) {
	addr := throughBridge(t)
	for _, kind := range load.Kinds {
		r := served(addr, kind)
		if r.Errors.Count() != 0 || r.Calls == 0 {
			t.Errorf("%s: %d calls, %d errors, the first: %v", kind, r.Calls, r.Errors.Count(), r.Errors.First())
		}
	}
	r := load.Hold{Addr: addr, N: 100, Workers: 8}.Run()
	if r.Errors.Count() != 0 || r.Done != 100 {
		t.Errorf("held: %d of 100 completed, %d errors, the first: %v", r.Done, r.Errors.Count(), r.Errors.First())
	}
}
