package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// Columns at which generated comments are broken.
const width = 100

// RenderDefaults writes the defaults as a commented YAML file that loads back to
// them.
func RenderDefaults() string {
	var b strings.Builder
	comment(&b, "", "The settings of the bridge and their defaults. Every key is also a flag (--timeouts.round) and an environment variable ("+
		EnvPrefix+"TIMEOUTS_ROUND); flags win over the environment, the environment over this file.")
	cfg := Default()
	section := ""
	for _, o := range rootSchema.options {
		name, leaf, nested := strings.Cut(o.Path, ".")
		if !nested {
			name, leaf = "", o.Path
		}
		if name != section && nested {
			b.WriteByte('\n')
			comment(&b, "", rootSchema.sections[name])
			b.WriteString(name + ":\n")
		}
		section = name
		indent := ""
		if nested {
			indent = "  "
		} else {
			b.WriteByte('\n')
		}
		comment(&b, indent, o.Doc+o.bounds())
		fmt.Fprintf(&b, "%s%s: %s\n", indent, leaf, format(o.in(reflect.ValueOf(cfg))))
	}
	b.WriteByte('\n')
	comment(&b, "", rootSchema.sections[upstreamsKey])
	b.WriteString(upstreamsKey + ": []\n")
	return b.String()
}

// bounds is the sentence that tells what values are allowed, if there is one to tell.
func (o Option) bounds() string {
	switch {
	case o.field.Tag.Get("oneof") != "":
		return " One of " + o.Form() + "."
	case o.field.Tag.Get("min") != "":
		return " From " + o.Form() + "."
	}
	return ""
}

// RenderTable writes the settings as a Markdown table for docs/configuration.md.
func RenderTable() string {
	var b strings.Builder
	b.WriteString("| key | default | values | what it is |\n| --- | --- | --- | --- |\n")
	cfg := reflect.ValueOf(Default())
	for _, o := range rootSchema.options {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", o.Key, format(o.in(cfg)), o.Form(), strings.ReplaceAll(o.Doc, "|", "\\|"))
	}
	fmt.Fprintf(&b, "| `%s` | `[]` | list of entries | %s |\n", upstreamsKey, rootSchema.sections[upstreamsKey])
	return b.String()
}

// comment writes text as lines of a YAML comment.
func comment(b *strings.Builder, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// yamlScalar writes a value on one line, quoted where YAML needs it.
func yamlScalar(value any) string {
	switch v := value.(type) {
	case []string:
		if len(v) == 0 {
			return "[]"
		}
	case map[string]string:
		if len(v) == 0 {
			return "{}"
		}
	}
	text, err := yaml.MarshalWithOptions(value, yaml.Flow(true))
	if err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(value)) // strings and numbers always marshal; this keeps the function total
	}
	return strings.TrimSpace(string(text))
}
