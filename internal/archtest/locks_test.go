package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/test/locks/list"
)

// TestTheLockOrderNamesEveryLock: a lock without a place in the order would be taken in
// any.
func TestTheLockOrderNamesEveryLock(t *testing.T) {
	order, err := list.Parse(read(t, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for file, parsed := range programIn(t, []string{"."}) {
		if withinAny(path.Dir(file), beside) {
			continue
		}
		for _, lock := range list.Locks(parsed) {
			exists[lock.Name()] = true
			if order[lock.Name()] == 0 {
				t.Errorf("%s: the lock %s has no place in docs/architecture.md, Lock order", file, lock.Name())
			}
		}
	}
	for name := range order {
		if !exists[name] {
			t.Errorf("docs/architecture.md orders the lock %s, which does not exist", name)
		}
	}
}

// TestLockedMethodsAreCalledUnderALock: what ends in Locked is called by what ends in
// Locked, or by who takes a lock.
func TestLockedMethodsAreCalledUnderALock(t *testing.T) {
	for file, parsed := range programIn(t, []string{"."}) {
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || strings.HasSuffix(fn.Name.Name, "Locked") {
				continue
			}
			locks, calls := false, ""
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
					switch name := sel.Sel.Name; {
					case name == "Lock", name == "RLock", name == "TryLock":
						locks = true
					case strings.HasSuffix(name, "Locked"):
						calls = name
					}
				}
				return true
			})
			if calls != "" && !locks && underALock[file+" "+fn.Name.Name] == "" {
				t.Errorf("%s: %s calls %s and takes no lock", file, fn.Name.Name, calls)
			}
		}
	}
}

// underALock are the exceptions, and why they need not take the lock.
var underALock = map[string]string{
	"bridge/call/progress.go notify":   "say calls back under the lock",
	"legacy/session/restore.go revive": "nobody else knows the session yet",
}

// programIn parses the program's files, without tests, below these folders.
func programIn(t *testing.T, folders []string) map[string]*ast.File {
	t.Helper()
	found := map[string]*ast.File{}
	for _, file := range files(t, ".go") {
		in := func(folder string) bool { return folder == "." || within(path.Dir(file), folder) }
		if strings.HasSuffix(file, "_test.go") || !slices.ContainsFunc(folders, in) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found[file] = parsed
	}
	return found
}
