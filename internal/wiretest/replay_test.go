package wiretest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/replay"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// transcripts returns the golden ones.
func transcripts(t *testing.T) map[string][]record.Line {
	t.Helper()
	all := map[string][]record.Line{}
	err := filepath.WalkDir("testdata", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, all[path], err = record.Read(file)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d transcripts, %v", len(all), err)
	}
	return all
}

// TestAGoldenTranscriptIsARecording: what it asks the server, a server can be asked again.
func TestAGoldenTranscriptIsARecording(t *testing.T) {
	for path, lines := range transcripts(t) {
		t.Run(strings.TrimPrefix(path, "testdata/"), func(t *testing.T) {
			server := peers.NewServer(t, peers.ServerOptions{})
			caller, err := streamable.New(streamable.Options{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = caller.Close() }()
			exchanges, err := replay.Exchanges(lines)
			if err != nil {
				t.Fatal(err)
			}
			err = replay.Against(t.Context(), caller, record.Head{Payloads: true}, exchanges, func(r replay.Result) {
				for _, d := range r.Differences {
					t.Errorf("%s: %s", r.Name, d)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
