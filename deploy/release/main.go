// Command release builds what a release consists of: for each platform an
// archive with the static binary and its bill of materials, and the checksums
// of everything.
//
//	go run ./deploy/release -version v1.2.3 -out dist
//
// The same commit and toolchain give the same bytes. It owns no publishing:
// where the files go and who signs them is decided elsewhere.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// platforms are those that a release is built for.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// executable returns the binary's file name.
func (p platform) executable() string {
	if p.os == "windows" {
		return "bridge.exe"
	}
	return "bridge"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	r, err := parse(args)
	if err != nil {
		return err
	}
	if r.made, err = commitTime(ctx, r.root); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if err := r.build(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		fmt.Fprintln(out, p)
	}
	sums, err := checksums(r.out, r.files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), sums, 0o644)
}

// release is what is being built.
type release struct {
	version   string
	root      string // of the repository
	out       string
	platforms []platform
	made      time.Time
	files     []string // in out, so far
}

// semver is what tags look like, and what goes into file names.
var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func parse(args []string) (*release, error) {
	r := &release{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "the release, like v1.2.3 or v1.2.3-rc.1")
	flags.StringVar(&r.root, "root", ".", "the directory of the repository")
	flags.StringVar(&r.out, "out", "dist", "where to write the files")
	only := flags.String("only", "", "platforms to build, like linux/amd64,darwin/arm64; empty: all")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 || !semver.MatchString(r.version) {
		return nil, errors.New("usage: release -version v1.2.3 [-out DIRECTORY] [-only OS/ARCH,…]")
	}
	for _, p := range platforms {
		if *only == "" || strings.Contains(","+*only+",", ","+p.String()+",") {
			r.platforms = append(r.platforms, p)
		}
	}
	if len(r.platforms) == 0 || *only != "" && len(r.platforms) != strings.Count(*only, ",")+1 {
		return nil, fmt.Errorf("-only %s: there are %v", *only, platforms)
	}
	return r, nil
}

// commitTime dates everything that a release contains: by SOURCE_DATE_EPOCH, or
// by the commit that is built.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		logged, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("no commit to take the date from; set SOURCE_DATE_EPOCH: %w", err)
		}
		text = strings.TrimSpace(string(logged))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// build writes archive and bill of materials of one platform.
func (r *release) build(ctx context.Context, p platform) error {
	dir, err := os.MkdirTemp("", "bridge-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, p.executable())
	if err := r.compile(ctx, p, binary); err != nil {
		return err
	}
	bom, err := r.billOfMaterials(p, binary)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("bridge_%s_%s_%s", r.version, p.os, p.arch)
	if err := r.add(name+".cdx.json", bom); err != nil {
		return err
	}
	contents, err := r.contents(p, binary)
	if err != nil {
		return err
	}
	pack, suffix := tarred, ".tar.gz"
	if p.os == "windows" {
		pack, suffix = zipped, ".zip"
	}
	archive, err := pack(contents, r.made)
	if err != nil {
		return err
	}
	return r.add(name+suffix, archive)
}

// compile builds the static binary.
func (r *release) compile(ctx context.Context, p platform, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", binary, "./cmd/bridge")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=", "GOARM64=", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

func (r *release) add(name string, content []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// contents are the files of an archive.
func (r *release) contents(p platform, binary string) ([]file, error) {
	files := []file{{name: p.executable(), from: binary, mode: 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		files = append(files, file{name: name, from: filepath.Join(r.root, name), mode: 0o644})
	}
	for i := range files {
		var err error
		if files[i].content, err = os.ReadFile(files[i].from); err != nil {
			return nil, err
		}
	}
	return files, nil
}
