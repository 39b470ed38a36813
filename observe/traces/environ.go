package traces

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/smallfile"
)

// FromEnviron returns the tracer that the standard variables of OpenTelemetry ask for,
// nil when they ask for none: without an endpoint nothing is traced. Variables that only
// the SDK reads, such as those of resources and of batches, are obeyed too.
func FromEnviron(variable func(string) string, version string) (*Tracer, error) {
	endpoint, err := endpointOf(variable)
	if err != nil || endpoint == "" {
		return nil, err
	}
	sample, err := samplerOf(variable("OTEL_TRACES_SAMPLER"), variable("OTEL_TRACES_SAMPLER_ARG"))
	if err != nil {
		return nil, err
	}
	out, err := exporterOf(variable, endpoint)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(resourceOf(variable, version)...))
	if err != nil {
		return nil, err
	}
	return newTracer(sample, out, about), nil
}

// of reads a variable of all signals that one for traces replaces.
func of(variable func(string) string, name string) string {
	return cmp.Or(variable("OTEL_EXPORTER_OTLP_TRACES_"+name), variable("OTEL_EXPORTER_OTLP_"+name))
}

func endpointOf(variable func(string) string) (string, error) {
	if strings.EqualFold(variable("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	endpoint := variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if endpoint == "" {
		if base := variable("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
			endpoint = strings.TrimSuffix(base, "/") + "/v1/traces"
		}
	}
	switch exporter := variable("OTEL_TRACES_EXPORTER"); {
	case exporter == "none":
		return "", nil
	case exporter != "" && exporter != "otlp":
		return "", errors.New("OTEL_TRACES_EXPORTER: only otlp and none are known")
	case exporter == "otlp" && endpoint == "":
		endpoint = "http://localhost:4318/v1/traces"
	}
	if endpoint == "" {
		return "", nil
	}
	if protocol := of(variable, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return "", errors.New("OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: write a URL, like http://localhost:4318")
	}
	if _, rest, _ := strings.Cut(endpoint, "://"); strings.ContainsAny(rest[:strings.LastIndex(rest, "@")+1], "/?#") { // else it stands in errors, as host and path
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: a password must be percent-encoded: / is %2F, ? is %3F, # is %23, and @ elsewhere is %40")
	}
	return endpoint, nil
}

// samplerOf reads the sampler. By default clients decide, and what they leave open is
// sampled.
func samplerOf(name, arg string) (sampler, error) {
	s := sampler{below: everything}
	name, s.parents = strings.CutPrefix(cmp.Or(name, "parentbased_always_on"), "parentbased_")
	switch name {
	case "always_on":
		return s, nil
	case "always_off":
		s.below = 0
		return s, nil
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(arg, "1"), 64)
		if err != nil || ratio < 0 || ratio > 1 {
			return s, errors.New("OTEL_TRACES_SAMPLER_ARG: write a number from 0 to 1")
		}
		s.below = uint64(ratio * everything)
		return s, nil
	}
	return s, errors.New("OTEL_TRACES_SAMPLER: use always_on, always_off or traceidratio, alone or after parentbased_")
}

func exporterOf(variable func(string) string, endpoint string) (*exporter, error) {
	e := &exporter{url: endpoint, header: http.Header{}, timeout: 10 * time.Second}
	if text := of(variable, "TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT: write milliseconds")
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	switch of(variable, "COMPRESSION") {
	case "gzip":
		e.gzip = true
	case "", "none":
	default:
		return nil, errors.New("OTEL_EXPORTER_OTLP_COMPRESSION: use gzip or none")
	}
	for pair := range strings.SplitSeq(of(variable, "HEADERS"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: write NAME=VALUE,NAME=VALUE") // whose values are secret
		}
		e.header.Set(strings.TrimSpace(name), value)
	}
	transport := http1.DefaultTransport()
	if file := of(variable, "CERTIFICATE"); file != "" {
		text, err := smallfile.Read(file)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate can be read from %s", file)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	e.client = &http.Client{Transport: transport, CheckRedirect: stay}
	return e, nil
}

// stay follows no redirect: it is for the collector alone what spans and headers say.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// resourceOf says what the spans are of.
func resourceOf(variable func(string) string, version string) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("service.name", "mcp-bridge"), attribute.String("service.version", version)}
	for pair := range strings.SplitSeq(variable("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		if text, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			list = append(list, attribute.String(strings.TrimSpace(name), text))
		}
	}
	if name := variable("OTEL_SERVICE_NAME"); name != "" {
		list = append(list, attribute.String("service.name", name))
	}
	return list
}
