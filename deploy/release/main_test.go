package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func host() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// built releases the host's platform and returns the files by name.
func built(t *testing.T) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	if err := run(t.Context(), []string{"-version", "v9.8.7-test.1", "-root", "../..", "-out", out, "-only", host().String()}, io.Discard); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(out, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestARelease(t *testing.T) {
	if !slices.Contains(platforms, host()) {
		t.Skip("this platform is not released for")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	files := built(t)
	name := "bridge_v9.8.7-test.1_" + runtime.GOOS + "_" + runtime.GOARCH
	archive := files[name+".tar.gz"]
	if runtime.GOOS == "windows" {
		archive = files[name+".zip"]
	}
	bom := files[name+".cdx.json"]
	if len(files) != 3 || archive == nil || bom == nil {
		t.Fatalf("the release consists of %v", files)
	}
	want := fmt.Sprintf("%x  %s.cdx.json", sha256.Sum256(bom), name)
	if sums := string(files["SHA256SUMS"]); !strings.Contains(sums, want) || strings.Count(sums, "\n") != 2 {
		t.Errorf("the checksums are\n%s", sums)
	}
	t.Run("again", func(t *testing.T) {
		for name, content := range built(t) {
			if !bytes.Equal(content, files[name]) {
				t.Errorf("%s is different when it is built again", name)
			}
		}
	})
	if runtime.GOOS != "windows" {
		contents := untar(t, archive)
		for _, name := range []string{"bridge", "LICENSE", "README.md", "CHANGELOG.md"} {
			if len(contents[name]) == 0 {
				t.Errorf("the archive lacks %s", name)
			}
		}
		checkBill(t, bom, contents["bridge"])
	}
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		head, err := r.Next()
		if err == io.EOF {
			return contents
		}
		if err != nil {
			t.Fatal(err)
		}
		if !head.ModTime.Equal(time.Unix(1700000000, 0)) || head.Uid != 0 || (head.Name == "bridge") != (head.Mode == 0o755) {
			t.Errorf("%s: made %s, owner %d, mode %o", head.Name, head.ModTime, head.Uid, head.Mode)
		}
		contents[head.Name], _ = io.ReadAll(r)
	}
}

func checkBill(t *testing.T, text, binary []byte) {
	t.Helper()
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	program := b.Metadata.Component
	if b.Format != "CycloneDX" || program.Version != "v9.8.7-test.1" || program.Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256(binary)) {
		t.Errorf("the bill is for %+v", program)
	}
	for _, want := range []string{"std", "github.com/spf13/cobra", "github.com/rs/zerolog"} {
		if !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == want }) {
			t.Errorf("the bill lacks %s", want)
		}
	}
	for _, c := range b.Components {
		if c.Version == "" || !strings.HasPrefix(c.PURL, "pkg:golang/") || c.Name != "std" && !strings.HasPrefix(c.Properties[0].Value, "h1:") {
			t.Errorf("component %+v", c)
		}
		if strings.Contains(c.Name, "goleak") || strings.Contains(c.Name, "rapid") {
			t.Errorf("%s is only for tests", c.Name)
		}
	}
	if !slices.Contains(program.Properties, property{"go:CGO_ENABLED", "0"}) {
		t.Errorf("the binary may not be static: %v", program.Properties)
	}
}

func TestZip(t *testing.T) {
	content := []byte("content")
	archive, err := zipped([]file{{name: "bridge.exe", mode: 0o755, content: content}}, time.Unix(1700000000, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Open("bridge.exe")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(f); !bytes.Equal(got, content) {
		t.Errorf("got %q", got)
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-version", "1.2.3"}, {"-version", "v1.2"}, {"-version", "v1.2.3/../x"}, {"-version", "v1.2.3", "rest"},
		{"-version", "v1.2.3", "-only", "plan9/mips"}, {"-version", "v1.2.3", "-only", "linux/amd64,linux/mips"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
