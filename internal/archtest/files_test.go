package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func within(name, tree string) bool { return name == tree || strings.HasPrefix(name, tree+"/") }

func withinAny(name string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return within(name, tree) })
}

// sources returns the imports of every Go file of the module, by its path from
// the root.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range files(t, ".go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		found[file] = nil
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[file] = append(found[file], imported)
		}
	}
	return found
}

// files lists the files of the repository with an extension, leaving out what
// tools put there.
func files(t *testing.T, extension string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (base == "node_modules" || base == "testdata" || base == "bin" || base == "dist" || strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		if filepath.Ext(base) == extension {
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			list = append(list, filepath.ToSlash(relative))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
