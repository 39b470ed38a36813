package config

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// These are the files whose comments document the settings.
var (
	//go:embed config.go
	configSource string
	//go:embed auth.go
	authSource string
)

// fieldDocs maps Type.Field to the field's comment as one paragraph. Reading it
// takes a few hundred microseconds, once per process; a generated copy would be
// a second text to keep equal.
var fieldDocs = readFieldDocs(configSource, authSource)

func readFieldDocs(sources ...string) map[string]string {
	docs := map[string]string{}
	for _, source := range sources {
		addFieldDocs(docs, source)
	}
	return docs
}

func addFieldDocs(docs map[string]string, source string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		panic(fmt.Sprintf("config: the embedded source does not parse: %v", err)) // it was compiled: impossible
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range body.Fields.List {
			for _, name := range field.Names {
				docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return false
	})
}
