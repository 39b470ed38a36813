// Command otel is the receiver of a real OpenTelemetry Collector: it prints every span
// that it takes, one to a line, as JSON. It is a module of its own, so that the
// collector's dependencies stay out of the bridge's.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.uber.org/zap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

// run receives at an address until ctx ends.
func run(ctx context.Context, address string) error {
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	cfg.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = address
	printer, err := consumer.NewTraces(printSpans)
	if err != nil {
		return err
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.Logger = zap.NewNop()
	in, err := factory.CreateTraces(ctx, settings, cfg, printer)
	if err != nil {
		return err
	}
	if err := in.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return in.Shutdown(context.Background())
}

// span is what the test looks at.
type span struct {
	Trace, ID, Parent, Name, Kind, Status, Service string
	Milliseconds                                   float64
	Attributes                                     map[string]any
	Links                                          int
}

func printSpans(_ context.Context, data ptrace.Traces) error {
	out := json.NewEncoder(os.Stdout)
	for _, of := range data.ResourceSpans().All() {
		service, _ := of.Resource().Attributes().Get("service.name")
		for _, scoped := range of.ScopeSpans().All() {
			for _, s := range scoped.Spans().All() {
				if err := out.Encode(span{s.TraceID().String(), s.SpanID().String(), s.ParentSpanID().String(), s.Name(), s.Kind().String(), s.Status().Code().String(),
					service.AsString(), float64(s.EndTimestamp()-s.StartTimestamp()) / 1e6, s.Attributes().AsRaw(), s.Links().Len()}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
