// Command locks runs tests with locks that hold the order of docs/architecture.md: the first
// that is taken out of it ends its test, with both names and the stack.
//
//	go run ./test/locks              # all tests
//	go run ./test/locks ./legacy/... # what "go test" takes
//
// It compiles the program from copies in which the mutexes of structs are those of the package
// order below. What is measured about allocations is left out, since those have some.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/test/locks/list"
	"github.com/mcpbridge/bridge/test/locks/order"
)

const mutexes = "github.com/mcpbridge/bridge/test/locks/order"

// beside is what the order does not name.
var beside = []string{".git", "bench", "deploy", "internal/archtest", "internal/peers", "test", "tools"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		args = []string{"./..."}
	}
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := rewrite(dir)
	if err != nil {
		return err
	}
	test := exec.Command("go", append([]string{"test", "-timeout", "30m", "-overlay", overlay, "-skip", "Alloc|NoMemory"}, args...)...)
	test.Stdout, test.Stderr = os.Stdout, os.Stderr
	return test.Run()
}

// rewrite puts copies of the program's files into dir, and returns the file that tells Go of
// them.
func rewrite(dir string) (string, error) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		return "", err
	}
	rows, err := list.Parse(string(page))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	put := func(file string, content []byte) error {
		file, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		return os.WriteFile(replace[file], content, 0o600)
	}
	if err := put("test/locks/order/rows.go", table(rows)); err != nil {
		return "", err
	}
	if err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && slices.Contains(beside, file) {
				err = fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		copied, err := exchange(source)
		if copied == nil || err != nil {
			return err
		}
		return put(file, copied)
	}); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o600)
}

// table is the file that tells the locks their rows.
func table(rows list.Order) []byte {
	return fmt.Appendf(nil, "package order\n\nfunc init() { rows = %#v }\n", map[string]int(rows))
}

// exchange returns a file with other mutexes, nil if it has none. No line moves.
func exchange(source []byte) ([]byte, error) {
	if !bytes.Contains(source, []byte("Mutex")) {
		return nil, nil
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	locks := list.Locks(file)
	if len(locks) == 0 {
		return nil, nil
	}
	var out, names bytes.Buffer
	from := positions.Position(file.Name.End()).Offset
	fmt.Fprintf(&out, "%s; import lockorder %q", source[:from], mutexes)
	for _, l := range locks {
		name := order.Prefix + strings.ReplaceAll(l.Name(), ".", "_")
		fmt.Fprintf(&names, "\ntype %s struct{}", name)
		fmt.Fprintf(&out, "%slockorder.%s[%s]", source[from:positions.Position(l.Mutex.Pos()).Offset], l.Mutex.Sel.Name, name)
		from = positions.Position(l.Mutex.End()).Offset
	}
	fmt.Fprintf(&out, "%s\nvar _ sync.Locker%s\n", source[from:], &names)
	return out.Bytes(), nil
}
