package mirror

import (
	"strings"
	"testing"
)

func BenchmarkLearn(b *testing.B) {
	plainTool := `{"name":"echo","description":"\u003cb\u003e","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`
	for name, text := range map[string]string{
		"plain":     `{"tools":[` + strings.Repeat(plainTool+",", 99) + plainTool + `]}`,
		"annotated": `{"tools":[` + strings.Repeat(strings.Replace(plainTool, `"string"`, `"string","x-mcp-header":"T"`, 1)+",", 99) + plainTool + `]}`,
	} {
		b.Run(name, func(b *testing.B) {
			var s Tools
			b.ReportAllocs()
			for b.Loop() {
				s.Learn("", []byte(text))
			}
		})
	}
}
