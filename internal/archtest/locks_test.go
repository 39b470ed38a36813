package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lockedRooms are the packages that docs/architecture.md has the lock order of.
var lockedRooms = []string{"legacy", "bridge", "sessions", "internal/agenda", "internal/budget", "internal/park", "internal/rates", "internal/turns"}

// lockName is a type that has a lock, by the name of its package.
var lockName = regexp.MustCompile("`([a-z0-9]+\\.[A-Za-z]+)`")

// TestTheLockOrderNamesEveryLock: a lock without a place in the order would be taken in
// any.
func TestTheLockOrderNamesEveryLock(t *testing.T) {
	listed := map[string]int{}
	_, section, _ := strings.Cut(read(t, "docs/architecture.md"), "## Lock order\n")
	for _, name := range lockName.FindAllStringSubmatch(section, -1) {
		listed[name[1]]++
	}
	exists := map[string]bool{}
	for file, parsed := range programIn(t, lockedRooms) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && hasMutex(spec) {
				exists[parsed.Name.Name+"."+spec.Name.Name] = true
				if listed[parsed.Name.Name+"."+spec.Name.Name] == 0 {
					t.Errorf("%s: the lock of %s.%s has no place in docs/architecture.md, Lock order", file, parsed.Name.Name, spec.Name.Name)
				}
			}
			return true
		})
	}
	for name, times := range listed {
		if !exists[name] {
			t.Errorf("docs/architecture.md orders the lock of %s, which has none", name)
		}
		if times > 1 {
			t.Errorf("docs/architecture.md orders the lock of %s %d times", name, times)
		}
	}
}

// hasMutex reports whether a struct has a mutex of its own.
func hasMutex(spec *ast.TypeSpec) bool {
	fields, ok := spec.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(fields.Fields.List, func(f *ast.Field) bool {
		sel, ok := f.Type.(*ast.SelectorExpr)
		return ok && (sel.Sel.Name == "Mutex" || sel.Sel.Name == "RWMutex")
	})
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
