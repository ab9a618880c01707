package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/internal/text/nearest"
	"github.com/perdure/perdure/internal/text/yamltext"
	"github.com/perdure/perdure/internal/toolguard/risk"
	loopconfig "github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// maxFileBytes bounds the size of a settings file.
const maxFileBytes = 64 << 10

// readFile reads the settings file in l.Dir, if there is one.
func (l *Loaded) readFile() (map[string]given, []error) {
	if !l.Exists {
		return nil, nil
	}
	name := filepath.Join(l.Dir, FileName)
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // opening a pipe waits
		return nil, []error{&fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}}
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, []error{err}
	}
	l.File = name
	p := parseFile(name, text)
	l.Loop.Hooks, l.Loop.Chains, l.Loop.Metrics, l.Loop.Risks = p.hooks, p.chains, p.metrics, p.risks
	l.Loop.Rules = p.rules
	return p.values, p.problems
}

// fileParser collects the settings of a file and its problems.
type fileParser struct {
	name     string
	values   map[string]given
	lines    map[string]int
	problems []error
	hooks    hook.Settings
	chains   map[string][]string
	risks    map[risk.Pattern]risk.Answer
	metrics  []loopconfig.Metric
	// rules are the settings on detection, rulesAt the node of one of them.
	rules   rules.Settings
	rulesAt ast.Node
}

// parseFile parses a settings file; name is for messages. Unknown and repeated keys
// are problems. Values are kept as text with their lines and checked later.
func parseFile(name string, text []byte) *fileParser {
	p := &fileParser{name: name, values: make(map[string]given), lines: make(map[string]int)}
	file, problem := yamltext.Parse(text, maxFileBytes)
	if problem != nil {
		p.values, p.problems = nil, []error{problem.In(name)}
		return p
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			p.add(doc.Body, "a second document is not allowed")
			break
		}
		body = doc.Body
	}
	if body != nil {
		p.mapping("", body)
	}
	p.checkRules()
	return p
}

func (p *fileParser) add(at ast.Node, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s:%d: %s", p.name, lineOf(at), fmt.Sprintf(format, args...)))
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// mapping parses the keys of a section; the whole file is the section "".
func (p *fileParser) mapping(section string, n ast.Node) {
	var entries []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		entries = m.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{m}
	default:
		p.add(n, "%s has no keys; write key: value", cmp.Or(strings.TrimSuffix(section, "."), "the file"))
		return
	}
	for _, entry := range entries {
		key, ok := entry.Key.(*ast.StringNode)
		if !ok {
			p.add(entry.Key, "unknown key %s", entry.Key.String())
			continue
		}
		p.entry(section+key.Value, key, entry.Value)
	}
}

func (p *fileParser) entry(key string, at *ast.StringNode, value ast.Node) {
	switch {
	case isSection(key):
		p.mapping(key+".", value)
	case key == hook.SettingsKey:
		p.hookList(value)
	case key == metricsKey:
		p.metricMap(value)
	case key == risksKey:
		p.riskMap(value)
	case key == chainsKey:
		p.chainMap(value)
	case p.detection(key, value):
	default:
		p.setting(key, at, value)
	}
}

// setting parses a setting of the table.
func (p *fileParser) setting(key string, at *ast.StringNode, value ast.Node) {
	s, known := find(new(Config), key)
	first, twice := p.lines[key]
	switch {
	case !known && isSecret(at.Value):
		p.add(at, "%s: secrets are not allowed in a file; set an environment variable, such as OPENAI_API_KEY", key)
	case !known:
		p.add(at, "%s", unknownKey(key))
	case twice:
		p.add(at, "%s: already set in line %d", key, first)
	default:
		p.lines[key] = lineOf(at)
		g := given{origin: origin{OriginFile, fmt.Sprintf("%s:%d", p.name, lineOf(at))}}
		g.text, g.problem = scalar(s, value)
		p.values[key] = g
	}
}

// scalar returns the text of a value, or the problem of its kind. A duration can
// look like text or a number.
func scalar(s setting, value ast.Node) (text, problem string) {
	switch v := value.(type) {
	case *ast.StringNode:
		quoted := v.Token.Type == token.DoubleQuoteType || v.Token.Type == token.SingleQuoteType
		switch s.at.(type) {
		case *int, *int64, *float64, **float64:
			if quoted {
				return "", fmt.Sprintf("is text; write %s without quotes", v.Value)
			}
		}
		return v.Value, ""
	case *ast.LiteralNode:
		return v.Value.Value, ""
	case *ast.NullNode:
		return "", "has no value; delete the line for the default"
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text := value.GetToken().Value
		if s.isText() {
			return "", fmt.Sprintf("is not text; write %q", text)
		}
		return text, ""
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return "", "is one value, not a list or section"
	default:
		return "", "is a tag, which is not allowed here"
	}
}

func isSection(key string) bool {
	within := func(s setting) bool { return strings.HasPrefix(s.key, key+".") }
	return isEntrySection(key) || slices.ContainsFunc(settings(new(Config)), within)
}

// unknownKey returns the problem of an unknown key: the nearest known one, or the keys of its
// section, or the command that lists all.
func unknownKey(key string) string {
	known := knownKeys(key)
	text := fmt.Sprintf("unknown key %q", key)
	section := key[:strings.LastIndex(key, ".")+1]
	within := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !strings.HasPrefix(k, section) })
	if section != "" && len(within) > 0 { // the same section makes no two keys similar
		for i, k := range within {
			within[i] = strings.TrimPrefix(k, section)
		}
		if near, ok := nearest.Word(strings.TrimPrefix(key, section), within); ok {
			return fmt.Sprintf("%s; did you mean %q?", text, section+near)
		}
	} else if near, ok := nearest.Word(key, known); ok {
		return fmt.Sprintf("%s; did you mean %q?", text, near)
	}
	const few = 12
	if section != "" && len(within) > 0 && len(within) <= few {
		return fmt.Sprintf("%s; the keys of %s are %s", text, strings.TrimSuffix(section, "."), strings.Join(within, ", "))
	}
	return text + "; `perdure config keys` lists the keys"
}

// knownKeys returns the keys that an unknown one can stand for.
func knownKeys(key string) []string {
	table := settings(new(Config))
	more := sortedKeys(detectionFields(new(rules.Settings)))
	for _, s := range Sections() {
		more = append(more, s.Key)
	}
	if entry := entryName(key); entry != "" {
		table, more = entrySettings(new(Config), entry), nil
	}
	var known []string
	for _, s := range table {
		known = append(known, s.key)
	}
	return append(known, more...)
}

// isSecret reports whether a key is the name of a secret.
func isSecret(key string) bool {
	words := strings.FieldsFunc(splitCamel(key), func(r rune) bool { return !unicode.IsLetter(r) })
	before := ""
	for _, word := range words {
		switch word {
		case "token", "secret", "password", "passwd", "credential", "credentials", "apikey", "bearer":
			return true
		case "key":
			if before == "api" || before == "private" || before == "access" {
				return true
			}
		}
		before = word
	}
	return false
}

// splitCamel returns apiKey as api_key.
func splitCamel(key string) string {
	var b strings.Builder
	lower := false
	for _, r := range key {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
