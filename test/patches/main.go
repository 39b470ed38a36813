// Command patches looks whether the modules that the program is made of
// are at the newest patch release of their line, which is what fixes of
// weaknesses come in. It asks the module proxy and nobody else.
//
//	go run ./test/patches
//
// It exits with 1 when one is behind. Modules without releases cannot be judged; they are named.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	behind, err := run(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "patches:", err)
		os.Exit(2)
	}
	if behind > 0 {
		os.Exit(1)
	}
}

// run writes what it finds to out, and returns how many modules are behind.
func run(out io.Writer) (behind int, err error) {
	linked, err := lines("list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/bridge")
	if err != nil {
		return 0, err
	}
	slices.Sort(linked)
	linked = slices.Compact(linked)
	found, err := lines(append([]string{"list", "-m", "-versions", "-f", "{{.Path}} {{.Version}}{{range .Versions}} {{.}}{{end}}"}, linked...)...)
	if err != nil {
		return 0, err
	}
	for _, line := range found {
		words := strings.Fields(line)
		used, ok := parse(words[1])
		if !ok {
			fmt.Fprintf(out, "%s %s has no release; not judged\n", words[0], words[1])
			continue
		}
		if newest := newestPatch(used, words[2:]); newest > used.patch {
			fmt.Fprintf(out, "%s %s is behind v%d.%d.%d\n", words[0], words[1], used.major, used.minor, newest)
			behind++
		}
	}
	fmt.Fprintf(out, "%d modules in the program, %d behind\n", len(found), behind)
	return behind, nil
}

// release is a version without a suffix.
type release struct{ major, minor, patch int }

// newestPatch returns the highest patch of the used version's line.
func newestPatch(used release, versions []string) int {
	newest := used.patch
	for _, text := range versions {
		if v, ok := parse(text); ok && v.major == used.major && v.minor == used.minor {
			newest = max(newest, v.patch)
		}
	}
	return newest
}

func parse(text string) (v release, ok bool) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "v"), "+incompatible")
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, into := range []*int{&v.major, &v.minor, &v.patch} {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return v, false
		}
		*into = n
	}
	return v, true
}

func lines(args ...string) (all []string, err error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if s.Text() != "" {
			all = append(all, s.Text())
		}
	}
	return all, err
}
