package archtest

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostTies is how many arrows between the files of a room may run against its order, where
// an arrow says that one file names what the other defines, and the order of the files is
// the one with the fewest such arrows that orderFiles finds. A room with fewer than ten can be read.
const mostTies = 9

// tiedRooms are the rooms that this is counted of: those that carry state, and their
// neighbours.
var tiedRooms = []string{
	"authorize", "authorize/sealed", "mrtr", "sessions", "translate",
	"bridge", "bridge/again", "bridge/call", "bridge/catalog", "bridge/ends", "bridge/flight", "bridge/subscriptions", "bridge/tasks",
	"internal/edge", "internal/fleet", "internal/mount", "internal/passthrough", "internal/relay", "internal/signin",
	"legacy", "legacy/channel", "legacy/exchange", "legacy/h1", "legacy/message", "legacy/quiet",
	"legacy/session", "legacy/stray", "legacy/stream", "legacy/web",
	"upstream", "upstream/h1", "upstream/mirror", "upstream/stdio", "upstream/streamable",
}

// TestRoomsCanBeReadInAnOrder counts. With -v it says for each room its files, lines, arrows and
// ties, and with ROOM=legacy which those of legacy are.
func TestRoomsCanBeReadInAnOrder(t *testing.T) {
	for _, room := range tiedRooms {
		r := survey(t, room)
		against := r.against(r.order)
		t.Logf("%-22s %2d files %5d lines %4d arrows %3d against the order", room, len(r.order), r.lines, r.arrows(), len(against))
		if testing.Verbose() && os.Getenv("ROOM") == room {
			t.Logf("order: %s", strings.Join(r.order, " "))
			for _, a := range against {
				t.Logf("\t%s -> %s: %s", a[0], a[1], strings.Join(r.uses[a[0]][a[1]], " "))
			}
		}
		if len(against) > mostTies {
			t.Errorf("%s: %d ties run against the order of its files, more than %d; ROOM=%s with -v names them", room, len(against), mostTies, room)
		}
	}
}

// mostFiles is into how many files a type and its methods fit where state is.
const mostFiles = 3

// TestTypesFitIntoThreeFiles: who reads a type that has state need not look for its methods
// everywhere.
func TestTypesFitIntoThreeFiles(t *testing.T) {
	methods := map[string]map[string]int{} // by room and type, then by file
	for file, parsed := range programIn(t, []string{"bridge", "legacy"}) {
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			of := path.Dir(file) + "." + receiver(fn.Recv.List[0].Type)
			if methods[of] == nil {
				methods[of] = map[string]int{}
			}
			methods[of][path.Base(file)]++
		}
	}
	for of, in := range methods {
		if len(in) > mostFiles {
			t.Errorf("%s has its methods in %d files, more than %d: %v", of, len(in), mostFiles, in)
		}
	}
}

func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// A room is a package's files, and what each uses of the others.
type room struct {
	uses  map[string]map[string][]string // file, file, names
	order []string                       // from the one that uses to the ones that are used
	lines int
}

func survey(t *testing.T, dir string) *room {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	r := &room{uses: map[string]map[string][]string{}}
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files (%v)", dir, err)
	}
	for _, name := range names {
		base := path.Base(filepath.ToSlash(name))
		if strings.HasSuffix(base, "_test.go") || base == "doc.go" {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		r.uses[base] = map[string][]string{}
		r.lines += fset.File(file.Pos()).LineCount()
	}
	r.connect(fset, parsed)
	r.order = r.orderFiles()
	return r
}

// connect finds which file names what of which other. Other packages are not looked
// at: what is theirs stays unknown, which is no matter here.
func (r *room) connect(fset *token.FileSet, parsed []*ast.File) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: nobody{}, Error: func(error) {}}
	pkg, _ := conf.Check("room", fset, parsed, info)
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg || !obj.Pos().IsValid() || !ofPackage(pkg, obj) {
			continue
		}
		from, to := fset.Position(id.Pos()).Filename, fset.Position(obj.Pos()).Filename
		from, to = path.Base(filepath.ToSlash(from)), path.Base(filepath.ToSlash(to))
		if from != to && !slices.Contains(r.uses[from][to], obj.Name()) {
			r.uses[from][to] = append(r.uses[from][to], obj.Name())
		}
	}
}

// ofPackage reports whether something belongs to the package and not to a function's inside:
// what stands at its top, methods and fields.
func ofPackage(pkg *types.Package, obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return obj.IsField() || obj.Parent() == pkg.Scope()
	default:
		return obj.Parent() == pkg.Scope()
	}
}

type nobody struct{}

func (nobody) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }

func (r *room) arrows() int {
	n := 0
	for _, to := range r.uses {
		n += len(to)
	}
	return n
}

// against are the arrows that run from a file to an earlier one.
func (r *room) against(order []string) (found [][2]string) {
	for i, from := range order {
		for _, to := range order[:i] {
			if len(r.uses[from][to]) > 0 {
				found = append(found, [2]string{from, to})
			}
		}
	}
	return found
}

// orderFiles begins with the files that use most and are used least, and then moves single
// files for as long as that helps. It gives the same order each time, and one that
// is at least nearly the best.
func (r *room) orderFiles() []string {
	order := slices.Sorted(maps.Keys(r.uses))
	used := map[string]int{}
	for _, to := range r.uses {
		for name := range to {
			used[name]++
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(used[a]-len(r.uses[a]), used[b]-len(r.uses[b]))
	})
	for best := len(r.against(order)); ; {
		before := best
		for _, name := range slices.Clone(order) {
			order, best = r.settle(order, name, best)
		}
		if best == before {
			return order
		}
	}
}

// settle puts a file where the fewest arrows run back, if that is better than where it is.
func (r *room) settle(order []string, name string, best int) ([]string, int) {
	rest := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return s == name })
	for i := range len(order) {
		tried := slices.Insert(slices.Clone(rest), i, name)
		if n := len(r.against(tried)); n < best {
			order, best = tried, n
		}
	}
	return order, best
}
