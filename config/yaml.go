package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// sequence is the still unread value of the key upstreams.
type sequence struct{ items []ast.Node }

// yaml reads the top level of a file. The tree is walked here rather than
// decoded by the library, because a decoder stops at the first error, does not
// tell defaults from values that were set, and quotes values in its messages.
func (l *loader) yaml(path string, data []byte) *sequence {
	file, err := parse(data)
	if err != nil {
		l.unreadable = true
		l.syntax(path, data, err)
		return nil
	}
	if len(file.Docs) > 1 {
		l.unreadable = true
		l.fail(origin{where: path}, "", "holds more than one YAML document; keep one")
		return nil
	}
	w := walker{loader: l, path: path, schema: rootSchema, root: reflect.ValueOf(&l.cfg).Elem()}
	if len(file.Docs) == 1 && file.Docs[0].Body != nil {
		w.mapping(file.Docs[0].Body, "")
	}
	return w.upstreams
}

// Bounds of a file, in bytes, and of what may stand in another: the parser needs time and memory
// by the square of that.
const (
	maxFile    = 1 << 20
	maxNesting = 64
)

// excess is an error about such a bound.
type excess string

// Error implements error.
func (e excess) Error() string { return string(e) }

func parse(data []byte) (*ast.File, error) {
	if len(data) > maxFile {
		return nil, excess(fmt.Sprintf("has more than %d bytes", maxFile))
	}
	tokens := lexer.Tokenize(string(data))
	depth := 0
	for i, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		if max(depth, inLine(tokens[i:])) > maxNesting {
			return nil, excess(fmt.Sprintf("is nested more than %d deep in line %d", maxNesting, t.Position.Line))
		}
	}
	return parser.Parse(tokens, 0)
}

// inLine counts the entries that begin in one another on a line, up to one too many.
func inLine(tokens token.Tokens) (n int) {
	for n < len(tokens) && n <= maxNesting && tokens[n].Type == token.SequenceEntryType {
		n++
	}
	return n
}

// mounts reads the entries of upstreams, each over the policy of the top level.
func (l *loader) mounts(path string, list *sequence) {
	if list == nil {
		return
	}
	for i, item := range list.items {
		mount := Mount{Policy: l.cfg.Policy}
		w := walker{
			loader: l, path: path, schema: mountSchema,
			root:  reflect.ValueOf(&mount).Elem(),
			label: fmt.Sprintf("%s[%d].", upstreamsKey, i),
		}
		l.origins[strings.TrimSuffix(w.label, ".")] = w.where(item)
		w.mapping(item, "")
		l.cfg.Upstreams = append(l.cfg.Upstreams, mount)
	}
}

// walker assigns the values of one YAML mapping to the fields of one struct.
type walker struct {
	*loader
	path      string
	label     string // put before keys in messages
	schema    *schema
	root      reflect.Value
	upstreams *sequence
}

func (w *walker) where(n ast.Node) origin { return position(w.path, n.GetToken()) }

func position(path string, t *token.Token) origin {
	if t == nil || t.Position == nil {
		return origin{where: path}
	}
	return origin{where: path, line: t.Position.Line}
}

func (w *walker) mapping(node ast.Node, prefix string) {
	entries, ok := node.(ast.MapNode)
	if !ok {
		if _, empty := node.(*ast.NullNode); !empty {
			w.unreadable = w.unreadable || prefix == "" && w.label == ""
			w.fail(w.where(node), w.label+strings.TrimSuffix(prefix, "."), "must be a mapping of keys to values")
		}
		return
	}
	for it := entries.MapRange(); it.Next(); {
		w.entry(it.KeyValue(), prefix)
	}
}

func (w *walker) entry(kv *ast.MappingValueNode, prefix string) {
	name := kv.Key.GetToken().Value
	key, at := prefix+name, w.where(kv.Key)
	option, known := w.schema.find(key)
	_, section := w.schema.sections[key]
	_, several := kv.Value.(ast.MapNode)
	switch {
	case known && !(section && several):
		w.option(option, kv.Value, at)
	case section && key == upstreamsKey:
		w.list(kv.Value, at)
	case section:
		w.mapping(kv.Value, key+".")
	default:
		names := w.schema.names(prefix)
		w.spoil(w.label + prefix + nearest(name, "", names))
		w.fail(at, "", fmt.Sprintf("unknown key %s%s", shown(w.label+key), Suggest(name, names)))
	}
}

func (w *walker) list(node ast.Node, at origin) {
	switch node := node.(type) {
	case *ast.SequenceNode:
		w.upstreams = &sequence{items: node.Values}
	case *ast.NullNode:
	default:
		w.fail(at, upstreamsKey, "must be a list; begin each entry with \"- path: /…\"")
	}
}

func (w *walker) option(o Option, node ast.Node, at origin) {
	key := w.label + o.Key
	values, err := texts(o, node)
	if err == nil {
		err = assign(o.in(w.root), values)
	}
	if err != nil {
		w.fail(at, key, o.describe(values, err))
		return
	}
	w.origins[key] = at
}

// texts returns the values of a node as assign wants them.
func texts(o Option, node ast.Node) ([]string, error) {
	if !o.List {
		text, err := scalar(node)
		if err != nil {
			return nil, err
		}
		return []string{text}, nil
	}
	if o.field.Type.Kind() == reflect.Map {
		return lines(o, node)
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return nil, errors.New("must be a list, like " + o.like())
	}
	var values []string
	for _, item := range list.Values {
		text, err := scalar(item)
		if err != nil {
			return nil, err
		}
		values = append(values, text)
	}
	return values, nil
}

func lines(o Option, node ast.Node) ([]string, error) {
	entries, ok := node.(ast.MapNode)
	if !ok {
		return nil, errors.New("must be a mapping of names to values, like " + o.like())
	}
	var lines []string
	for it := entries.MapRange(); it.Next(); {
		text, err := scalar(it.Value())
		if err != nil {
			return nil, err
		}
		lines = append(lines, it.Key().GetToken().Value+": "+text)
	}
	return lines, nil
}

func scalar(node ast.Node) (string, error) {
	switch node := node.(type) {
	case *ast.StringNode:
		return utf8Only(node.Value)
	case *ast.LiteralNode:
		return utf8Only(node.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return node.GetToken().Value, nil
	case *ast.NullNode:
		return "", errors.New("has no value; give it one or remove the line")
	case *ast.AnchorNode, *ast.AliasNode:
		return "", errors.New("uses a YAML anchor, which is not supported; write the value out")
	default:
		return "", errors.New("must be a single value")
	}
}

// utf8Only refuses a text in which the parser has put a replacement for what is no UTF-8.
func utf8Only(text string) (string, error) {
	if strings.ContainsRune(text, utf8.RuneError) {
		return "", errors.New("has a character that is no UTF-8; save the file as UTF-8")
	}
	return text, nil
}
