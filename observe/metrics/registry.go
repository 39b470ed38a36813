package metrics

import (
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcpbridge/bridge/observe"
)

// Registry holds the metrics of one process.
type Registry struct {
	prometheus *prometheus.Registry
	histograms map[string]*prometheus.HistogramVec
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec

	named bool // tools are told apart

	mu     sync.Mutex
	mounts map[string]*Mount
}

// NewRegistry returns the metrics of a program of this version, built of a revision of
// its source.
func NewRegistry(version, revision string) *Registry {
	r := &Registry{
		prometheus: prometheus.NewRegistry(),
		histograms: map[string]*prometheus.HistogramVec{},
		counters:   map[string]*prometheus.CounterVec{},
		gauges:     map[string]*prometheus.GaugeVec{},
		mounts:     map[string]*Mount{},
	}
	for _, m := range table {
		if !lookedAt(m.name) && m.name != traceSpans.name {
			r.register(m)
		}
	}
	r.counter(reloads).WithLabelValues("obeyed")
	r.counter(reloads).WithLabelValues("refused")
	r.gauge(reloaded).WithLabelValues().SetToCurrentTime()
	r.gauge(buildInfo).WithLabelValues(version, revision, runtime.Version()).Set(1)
	r.prometheus.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// NameTools has calls told apart by their tools. It is to be called before the first mount.
func (r *Registry) NameTools() { r.named = true }

// tools returns what knows the tools of a mount; nil: they are not told apart.
func (r *Registry) tools() *toolNames {
	if !r.named {
		return nil
	}
	return newToolNames()
}

// Look has look called for each scrape, to tell what is under way. It is to be called once.
func (r *Registry) Look(look func() []State) { r.prometheus.MustRegister(newSight(look)) }

// Reloaded counts that the configuration was read again.
func (r *Registry) Reloaded(obeyed bool) {
	if !obeyed {
		r.counter(reloads).WithLabelValues("refused").Inc()
		return
	}
	r.counter(reloads).WithLabelValues("obeyed").Inc()
	r.gauge(reloaded).WithLabelValues().SetToCurrentTime()
}

// Traces has what became of spans read for each scrape, by outcome. It is to be called
// once.
func (r *Registry) Traces(outcomes map[string]func() uint64) {
	for outcome, read := range outcomes {
		r.prometheus.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: traceSpans.name, Help: traceSpans.help, ConstLabels: prometheus.Labels{"outcome": outcome}},
			func() float64 { return float64(read()) }))
	}
}

func (r *Registry) register(m metric) {
	switch m.kind {
	case histogram:
		r.histograms[m.name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: m.buckets}, m.labels)
		r.prometheus.MustRegister(r.histograms[m.name])
	case counter:
		r.counters[m.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
		r.prometheus.MustRegister(r.counters[m.name])
	case gauge:
		r.gauges[m.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.name, Help: m.help}, m.labels)
		r.prometheus.MustRegister(r.gauges[m.name])
	}
}

func (r *Registry) histogram(m metric) *prometheus.HistogramVec { return r.histograms[m.name] }
func (r *Registry) counter(m metric) *prometheus.CounterVec     { return r.counters[m.name] }
func (r *Registry) gauge(m metric) *prometheus.GaugeVec         { return r.gauges[m.name] }

// Mount returns what takes the reports of the mount at a path, in front of a server. After
// a reload with another server the address stays that of the first.
func (r *Registry) Mount(path string, server observe.Server) *Mount {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mounts[path] == nil {
		r.mounts[path] = r.newMount(path, server)
	}
	return r.mounts[path]
}

// Handler serves the metrics to scrapers.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prometheus, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
