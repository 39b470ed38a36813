// Package list reads the lock order of docs/architecture.md, and finds the locks that it is about.
package list

import (
	"fmt"
	"go/ast"
	"regexp"
	"strconv"
	"strings"
)

var (
	row  = regexp.MustCompile(`(?m)^([0-9]+)\. `)
	name = regexp.MustCompile("`([a-z0-9]+\\.[A-Za-z0-9]+(?:\\.[A-Za-z0-9]+)?)`")
)

// An Order has the row of each lock: "call.Call" for the only one of a type,
// "stream.Response.cut" for one of several.
type Order map[string]int

// Parse reads the section "Lock order" of a page.
func Parse(page string) (Order, error) {
	_, section, found := strings.Cut(page, "## Lock order\n")
	if !found {
		return nil, fmt.Errorf("no section is called Lock order")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	order := Order{}
	begins := row.FindAllStringSubmatchIndex(section, -1)
	for i, at := range begins {
		number, err := strconv.Atoi(section[at[2]:at[3]])
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("row %d of the lock order has the number %s", i+1, section[at[2]:at[3]])
		}
		end := len(section)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		for _, lock := range name.FindAllStringSubmatch(section[at[1]:end], -1) {
			if order[lock[1]] != 0 {
				return nil, fmt.Errorf("the lock order has %s twice", lock[1])
			}
			order[lock[1]] = number
		}
	}
	return order, nil
}

// A Lock is a mutex in a struct.
type Lock struct {
	Package, Type, Field string

	Mutex *ast.SelectorExpr // its type: sync.Mutex or sync.RWMutex
	Alone bool              // the struct has no other
}

// Name is what the order calls it.
func (l *Lock) Name() string {
	if l.Alone {
		return l.Package + "." + l.Type
	}
	return l.Package + "." + l.Type + "." + l.Field
}

// Locks returns those of the types that a file declares.
func Locks(file *ast.File) []Lock {
	var locks []Lock
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			locks = append(locks, locksOf(file.Name.Name, spec)...)
		}
		return true
	})
	return locks
}

func locksOf(pkg string, spec *ast.TypeSpec) []Lock {
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var locks []Lock
	for _, f := range fields.Fields.List {
		sel, ok := f.Type.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Mutex" && sel.Sel.Name != "RWMutex" {
			continue
		}
		field := sel.Sel.Name // embedded
		if len(f.Names) > 0 {
			field = f.Names[0].Name
		}
		locks = append(locks, Lock{Package: pkg, Type: spec.Name.Name, Field: field, Mutex: sel})
	}
	for i := range locks {
		locks[i].Alone = len(locks) == 1
	}
	return locks
}
