package checkconfig

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// readTOML reads TOML. The library keeps no positions, so that lines are searched for.
func readTOML(text []byte) ([]setting, bool) {
	var top map[string]any
	if toml.Unmarshal(text, &top) != nil {
		return nil, false
	}
	w := &tomlReader{lines: strings.Split(string(text), "\n")}
	w.value(nil, top)
	return w.all, true
}

type tomlReader struct {
	all   []setting
	lines []string
}

func (w *tomlReader) value(at []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.value(joined(at, key), v[key])
		}
	case []map[string]any:
		for i, inner := range v {
			w.value(joined(at, fmt.Sprintf("#%d", i)), inner)
		}
	case []any:
		for i, inner := range v {
			w.value(joined(at, fmt.Sprintf("#%d", i)), inner)
		}
	default:
		s := setting{path: at, value: fmt.Sprint(v)}
		s.line = w.find(s.key(), s.value)
		w.all = append(w.all, s)
	}
}

// find returns the first line with the value at or after the key; that of the key if there
// is none.
func (w *tomlReader) find(key, value string) int {
	const near = 60
	for i, line := range w.lines {
		if !strings.Contains(line, key) || !strings.ContainsAny(line, "=[") {
			continue
		}
		for j := i; j < min(i+near, len(w.lines)); j++ {
			if strings.Contains(w.lines[j], value) {
				return j + 1
			}
		}
	}
	return 0
}

// readINI reads sections of keys. A line that is indented deeper than its key continues the
// value.
func readINI(text []byte) []setting {
	var all []setting
	var section, key []string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		bare := strings.TrimSpace(line)
		switch {
		case bare == "" || strings.ContainsRune("#;!", rune(bare[0])):
			continue
		case bare[0] == '[' && strings.Contains(bare, "]"):
			section, key = []string{strings.Trim(bare[:strings.LastIndex(bare, "]")], "[] ")}, nil
			continue
		case (line[0] == ' ' || line[0] == '\t') && key != nil:
			all = append(all, setting{path: joined(key, "#0"), value: bare, line: n})
			continue
		}
		at := strings.IndexAny(bare, "=:")
		if at < 0 {
			at = len(bare)
		}
		key = joined(section, strings.TrimSpace(bare[:at]))
		value := strings.TrimSpace(strings.TrimLeft(bare[at:], "=: "))
		if value != "" || at == len(bare) {
			all = append(all, setting{path: key, value: value, line: n})
		}
	}
	return all
}

// readLines reads files of one pattern or option a line.
func readLines(name string, text []byte) []setting {
	key := "options"
	switch base := strings.ToLower(path.Base(name)); {
	case strings.HasSuffix(base, "ignore"):
		key = "ignore"
	case base == "codeowners":
		key = "owners"
	case strings.HasSuffix(base, ".sln"):
		key = "solution"
	}
	var all []setting
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, setting{path: []string{key}, value: line, line: n})
		}
	}
	return all
}

var (
	// makeTarget and makeVariable match the lines of a Makefile or justfile that are no recipes.
	makeTarget   = lazyregexp.New(`^@?([A-Za-z0-9_./%$(){} -]+?)(\s+[^:=]*)?::?(\s[^=]*|)$`)
	makeVariable = lazyregexp.New(`^(?:export\s+)?([A-Za-z0-9_.]+)\s*[:?+]?=\s*(.*)$`)
)

// readMake reads the recipes, prerequisites and variables of a Makefile.
func readMake(text []byte) []setting {
	w := &makeReader{needs: make(map[string][]setting)}
	n, begin, whole := 0, 0, ""
	for line := range strings.Lines(string(text)) {
		if n++; whole == "" {
			begin = n
		}
		line = strings.TrimRight(line, "\r\n")
		if before, continued := strings.CutSuffix(line, "\\"); continued {
			whole += before + " "
			continue
		}
		w.line(whole+line, begin)
		whole = ""
	}
	for _, target := range slices.Sorted(maps.Keys(w.needs)) {
		w.reach(target, target, map[string]bool{target: true})
	}
	return w.all
}

type makeReader struct {
	all    []setting
	target string
	needs  map[string][]setting // prerequisites by target
}

func (w *makeReader) line(line string, n int) {
	bare := strings.TrimSpace(line)
	switch {
	case bare == "" || bare[0] == '#':
	case (line[0] == '\t' || line[0] == ' ') && w.target != "":
		w.all = append(w.all, setting{path: []string{w.target, "run"}, value: bare, line: n})
		if called, ok := strings.CutPrefix(strings.TrimLeft(bare, "@"), "$(MAKE) "); ok {
			w.need(called, n)
		}
	case makeVariable().MatchString(bare):
		m := makeVariable().FindStringSubmatch(bare)
		w.all = append(w.all, setting{path: []string{"variables", m[1]}, value: m[2], line: n})
	case makeTarget().MatchString(bare) && bare[0] != '.':
		head, needs, _ := strings.Cut(bare, ":")
		w.target = strings.Fields(head + " ?")[0]
		w.need(strings.TrimPrefix(needs, ":"), n)
	}
}

func (w *makeReader) need(names string, n int) {
	for name := range strings.FieldsSeq(names) {
		w.needs[w.target] = append(w.needs[w.target], setting{value: name, line: n})
	}
}

// reach records what a target makes because one that it reaches needs it: a prerequisite that
// moved to another prerequisite is still made. Files do not count.
func (w *makeReader) reach(target, through string, seen map[string]bool) {
	for _, need := range w.needs[through] {
		if seen[need.value] || len(w.all) > maxSettings {
			continue
		}
		seen[need.value] = true
		if !strings.ContainsAny(need.value, "./%") || w.needs[need.value] != nil {
			w.all = append(w.all, setting{path: []string{target, "needs", "run"}, value: "make " + need.value, line: need.line})
		}
		w.reach(target, need.value, seen)
	}
}

// element is an element of an XML file.
type element struct {
	name, text string
	line       int
	kids       []*element
}

// readXML reads elements and attributes. An element is identified by an attribute or an
// inner element that names it.
func readXML(text []byte) ([]setting, bool) {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = nil
	root := &element{}
	open := []*element{root}
	for {
		t, err := d.Token()
		if err != nil {
			var all []setting
			for _, k := range root.kids {
				k.settings(nil, &all)
			}
			return all, err.Error() == "EOF" && len(open) == 1
		}
		line, _ := d.InputPos()
		top := open[len(open)-1]
		switch t := t.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local, line: line}
			for _, a := range t.Attr {
				e.kids = append(e.kids, &element{name: a.Name.Local, text: a.Value, line: line})
			}
			top.kids = append(top.kids, e)
			if open = append(open, e); len(open) > maxDepth {
				return nil, false
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.text += strings.TrimSpace(string(t))
		}
	}
}

func (e *element) settings(at []string, all *[]setting) {
	outer := at
	at = joined(at, e.name)
	for _, k := range e.kids {
		if slices.Contains([]string{"artifactId", "id", "name", "ref", "type", "Include"}, k.name) && len(k.kids) == 0 {
			if e.name == "property" || e.name == "param" {
				at = joined(outer, k.text)
				break
			}
			at = joined(at, "#id "+k.text)
			*all = append(*all, setting{path: joined(outer, plural(e.name)), value: k.text, line: e.line})
			break
		}
	}
	if e.text != "" || len(e.kids) == 0 {
		*all = append(*all, setting{path: at, value: e.text, line: e.line})
	}
	for _, k := range e.kids {
		k.settings(at, all)
	}
}

// plural names the list of the elements of a name.
func plural(name string) string {
	if strings.HasSuffix(name, "s") {
		return name + "es"
	}
	return name + "s"
}
