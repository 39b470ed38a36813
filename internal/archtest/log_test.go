package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// TestLinesOfTheLogHaveARate: 20 a minute of each kind are written, which logfield.Rated sees to for every logger that is
// made of one of these, whoever writes the line (docs/operations.md).
func TestLinesOfTheLogHaveARate(t *testing.T) {
	roots := map[string]string{
		"cmd/bridge":     "the log of the process, which is rated",
		"internal/check": "what a check hears of itself, which is judged and shown once",
	}
	others := []string{"test", "bench", "internal/peers"}
	root := regexp.MustCompile(`\bzerolog\.(New|NewConsoleWriter)\(`)
	onlyThere(t, roots, others, func(_, text string) bool { return root.MatchString(text) },
		"makes a logger of its own, whose lines have no rate: take the one that it is given, or say in log_test.go why")
	for _, file := range []string{"cmd/bridge/log.go", "mcpbridge.go"} {
		if !strings.Contains(read(t, file), "logfield.Rated(") {
			t.Errorf("%s hands on a logger whose lines have no rate", file)
		}
	}
	each := map[string]string{
		"bridge/call":    "at debug, every call: who sets that level asks for it",
		"legacy/session": "at debug, every session",
		"internal/edge":  "at debug, every request",
		"cmd/bridge":     "what people do on the admin listener",
		"upstream/stdio": "what a process prints on its standard error, which is counted in bytes",
	}
	onlyThere(t, each, others, func(_, text string) bool { return strings.Contains(text, "logfield.Each(") },
		"writes every line, however many there are: say in log_test.go who has asked for that")
	own := regexp.MustCompile(`\bzerolog\.(BurstSampler|BasicSampler|LevelSampler)\b|\.(Sample|Ctx)\(`)
	onlyThere(t, map[string]string{"internal/logfield": "the rates"}, others, func(_, text string) bool {
		return strings.Contains(text, "zerolog") && own.MatchString(text)
	}, "has a rate of its own for its lines: use logfield.AtMost")
}
