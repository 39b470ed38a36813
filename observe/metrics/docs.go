package metrics

import (
	"fmt"
	"strconv"
	"strings"
)

// RenderTables returns the tables of all metrics for the documentation.
func RenderTables() string {
	var b strings.Builder
	b.WriteString("By the conventions of OpenTelemetry for MCP, in Prometheus' spelling:\n\n")
	renderTable(&b, func(m metric) bool { return m.otel != "" })
	b.WriteString("\nThe bridge's own:\n\n")
	renderTable(&b, func(m metric) bool { return m.otel == "" })
	return b.String()
}

func renderTable(b *strings.Builder, wanted func(metric) bool) {
	b.WriteString("| metric | kind | labels | what it tells |\n| --- | --- | --- | --- |\n")
	for _, m := range table {
		if wanted(m) {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s%s |\n", m.name, m.kind, strings.Join(m.labels, ", "), m.help, bounds(&m))
		}
	}
}

// bounds says where the buckets of a histogram end.
func bounds(m *metric) string {
	if m.kind != histogram {
		return ""
	}
	var ends []string
	for _, end := range m.buckets {
		ends = append(ends, strconv.FormatFloat(end, 'f', -1, 64))
	}
	return " Buckets up to " + strings.Join(ends, ", ") + "."
}
