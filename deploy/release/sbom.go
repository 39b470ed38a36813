package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that a bill of materials here has.
type (
	bill struct {
		Format       string        `json:"bomFormat"`
		Spec         string        `json:"specVersion"`
		Serial       string        `json:"serialNumber"`
		Version      int           `json:"version"`
		Metadata     metadata      `json:"metadata"`
		Components   []component   `json:"components"`
		Compositions []composition `json:"compositions"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Hashes     []digest   `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	digest struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	composition struct {
		Aggregate  string   `json:"aggregate"`
		Assemblies []string `json:"assemblies"`
	}
)

// billOfMaterials lists what the linker put into the binary, as the binary
// itself says: exactly the modules of this platform, with the sums that go.sum
// pins. Licenses and who depends on whom are not recorded there, so the bill
// doesn't claim to know them.
func (r *release) billOfMaterials(p platform, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	program := module("application", info.Main.Path, r.version)
	program.PURL += "?" + url.Values{"goos": {p.os}, "goarch": {p.arch}}.Encode()
	program.Hashes = []digest{{"SHA-256", hex.EncodeToString(sum[:])}}
	program.Properties = settings(info)
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial:       serial(sum),
		Metadata:     metadata{Timestamp: r.made.Format(time.RFC3339), Component: program},
		Components:   append([]component{module("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}, libraries(info)...),
		Compositions: []composition{{"complete", []string{program.Ref}}},
	}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func libraries(info *debug.BuildInfo) []component {
	var all []component
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := module("library", m.Path, m.Version)
		c.Properties = []property{{"go:sum", m.Sum}}
		all = append(all, c)
	}
	return all
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

// settings are those of the build that say what was built and how.
func settings(info *debug.BuildInfo) []property {
	all := []property{{"go:version", info.GoVersion}}
	for _, s := range info.Settings {
		switch s.Key {
		case "CGO_ENABLED", "-trimpath", "vcs.revision", "vcs.modified":
			all = append(all, property{"go:" + s.Key, s.Value})
		}
	}
	return all
}

// serial derives the bill's UUID from the binary, so that it is the same for
// the same binary.
func serial(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80 // version 8: made by a rule of our own
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
