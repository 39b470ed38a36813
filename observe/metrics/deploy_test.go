package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDashboardAndAlertsAskForWhatThereIs: a metric that is renamed takes those along
// who watch it.
func TestDashboardAndAlertsAskForWhatThereIs(t *testing.T) {
	known := map[string]bool{}
	for _, m := range table {
		known[m.name] = true
		if m.kind == histogram {
			known[m.name+"_bucket"], known[m.name+"_count"], known[m.name+"_sum"] = true, true, true
		}
	}
	files, err := filepath.Glob("../../deploy/observability/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	names := regexp.MustCompile(`\bmcp(bridge)?_[a-z_]+\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", file)
		}
		for _, name := range names.FindAllString(string(text), -1) {
			if !known[name] && name != "mcp_method_name" && name != "mcp_protocol_version" {
				t.Errorf("%s asks for %s, which does not exist", file, name)
			}
		}
	}
}
