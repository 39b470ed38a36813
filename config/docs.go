package config

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// settings are the files whose comments document the settings.
//
//go:embed auth.go config.go limits.go questions.go stores.go tls.go
var settings embed.FS

// fieldDocs maps Type.Field to the field's comment as one paragraph. Reading it
// takes a few hundred microseconds, once per process; a generated copy would be
// a second text to keep equal.
var fieldDocs = readFieldDocs()

func readFieldDocs() map[string]string {
	docs := map[string]string{}
	files, err := settings.ReadDir(".")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range files {
		source, err := settings.ReadFile(file.Name())
		if err != nil {
			panic(err) // it is embedded
		}
		addFieldDocs(docs, string(source))
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
