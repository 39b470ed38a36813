package config

import (
	"errors"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/internal/smallfile"
)

// Sources are the places that settings come from. Later ones win: file,
// environment, flags.
type Sources struct {
	File    string    // path of the YAML file; empty: none
	Environ []string  // NAME=value, as os.Environ returns them
	Flags   []Setting // in the order of the command line
	// Partly is for commands that obey some settings only: those of others that have no effect are no mistake.
	Partly bool
}

// Setting is one flag of the command line.
type Setting struct {
	Key    string
	Values []string // one, or more for settings that take a list
}

// where names a flag as it was written: a command has none.
func (s Setting) where() string {
	if s.Key == "command" {
		return commandPlace
	}
	return "--" + s.Key
}

// commandPlace is where a command line has the server's command.
const commandPlace = `what follows "--"`

// Load reads the sources over the defaults and validates the outcome. The error
// is an *Error with every problem of every source.
func Load(src Sources) (Config, error) {
	l := read(src)
	if l.unreadable {
		return l.cfg, errorOf(l.problems) // judging the defaults alone would only distract
	}
	for _, p := range l.cfg.problems() {
		if _, set := l.origins[p.Key]; l.spoilt[p.Key] && !set {
			continue // it was to be set, but could not even be read, which was reported
		}
		if src.Partly && p.idle {
			continue
		}
		at := l.originOf(p.Key)
		p.Where, p.Line = at.where, at.line
		l.problems = append(l.problems, p)
	}
	return l.cfg, errorOf(l.problems)
}

// loader collects settings, where each came from, and what was wrong.
type loader struct {
	cfg      Config
	origins  map[string]origin // by key
	problems []Problem
	spoilt   map[string]bool // keys that were set, but not so that their values could be read
	// unreadable is set when the file gave no settings at all.
	unreadable bool
}

// origin is where a setting was set.
type origin struct {
	where string
	line  int
}

func newLoader() *loader {
	return &loader{cfg: Default(), origins: map[string]origin{}, spoilt: map[string]bool{}}
}

func read(src Sources) *loader {
	l := newLoader()
	upstreams := l.file(src.File)
	l.environment(src.Environ)
	for _, flag := range src.Flags {
		l.values(origin{where: flag.where()}, flag.Key, flag.Values)
	}
	// Entries of upstreams come last: they start from the final policy of the top level.
	l.mounts(src.File, upstreams)
	return l
}

func (l *loader) fail(at origin, key, text string) {
	l.spoil(key)
	l.problems = append(l.problems, Problem{Where: at.where, Line: at.line, Key: key, Text: text})
}

// originOf tells where a key was set; for a key that is missing from an entry of
// upstreams, where that entry begins.
func (l *loader) originOf(key string) origin {
	if at, ok := l.origins[key]; ok {
		return at
	}
	if entry, _, inside := strings.Cut(key, "]."); inside {
		return l.origins[entry+"]"]
	}
	return origin{}
}

// spoil has nothing said of what a setting is without the value that somebody meant to give it.
func (l *loader) spoil(key string) {
	l.spoilt[key] = true
	if label, ok := strings.CutSuffix(key, "command"); ok {
		l.spoilt[label+"upstream"] = true // which it stands for
	}
}

func (l *loader) file(path string) *sequence {
	if path == "" {
		return nil
	}
	data, err := smallfile.UpTo(path, maxFile)
	if err != nil {
		l.unreadable = true
		if long, ok := errors.AsType[smallfile.TooLong](err); ok {
			l.fail(origin{where: path}, "", long.Error())
			return nil
		}
		if errors.Is(err, smallfile.ErrUTF16) {
			l.fail(origin{where: path}, "", smallfile.ErrUTF16.Error())
			return nil
		}
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		l.fail(origin{where: path}, "", "cannot read the configuration: "+err.Error())
		return nil
	}
	return l.yaml(path, data)
}

// kubernetes matches the variables that Kubernetes sets in every pod for a
// service named bridge or bridge-…; they are no settings of ours.
var kubernetes = regexp.MustCompile(`^BRIDGE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// configVariable names the configuration file, which is no setting itself.
const configVariable = EnvPrefix + "CONFIG"

func (l *loader) environment(environ []string) {
	variables := make([]string, 0, len(rootSchema.options))
	for _, o := range rootSchema.options {
		variables = append(variables, o.Env())
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(strings.TrimSuffix(entry, "\r"), "=") // of a file with lines of Windows
		if !strings.HasPrefix(name, EnvPrefix) || name == configVariable || kubernetes.MatchString(name) {
			continue
		}
		at := slices.Index(variables, name)
		if at < 0 {
			l.fail(origin{where: name}, "", "is no setting of the bridge"+suggestBehind(EnvPrefix, name, variables))
			continue
		}
		option := rootSchema.options[at]
		l.values(origin{where: name}, option.Key, split(option, value))
	}
}

// split makes the values of a list out of one variable: words for a command,
// lines for headers, items between commas for the rest.
func split(o Option, value string) []string {
	switch {
	case !o.List:
		return []string{value}
	case o.Key == "command":
		return strings.Fields(value)
	case o.field.Type.Kind() == reflect.Map:
		return nonEmpty(strings.Split(value, "\n"))
	default:
		return nonEmpty(strings.Split(value, ","))
	}
}

func nonEmpty(items []string) []string {
	var kept []string
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" {
			kept = append(kept, item)
		}
	}
	return kept
}

// values sets one option of the top level from text.
func (l *loader) values(at origin, key string, values []string) {
	option, ok := rootSchema.find(key)
	if !ok {
		l.fail(at, "", "is no setting of the bridge")
		return
	}
	field := option.in(reflect.ValueOf(&l.cfg).Elem())
	if err := assign(field, values); err != nil {
		l.fail(at, key, option.describe(values, err))
		return
	}
	l.origins[key] = at
}

// describe puts the offending value before the reason, unless it is a secret.
func (o Option) describe(values []string, err error) string {
	if o.secret() || len(values) != 1 {
		return err.Error()
	}
	return shown(values[0]) + " " + err.Error()
}
