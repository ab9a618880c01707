package agent

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Limits of the values that are read from the input of a tool.
const (
	maxValues     = 10_000
	maxDepth      = 50
	maxValuePaths = 200
	maxPathBytes  = 4096
)

// values are the strings in the input of a tool that this package does not know. Servers of tools
// name their parameters as they like, so paths are found by their form, at any depth.
type values struct {
	left  int
	paths []string
	// lines are command lines, which have no form: they are found by the parameter's name.
	lines []string
}

// valuesOf reads the input of a tool.
func valuesOf(input json.RawMessage) *values {
	v := &values{left: maxValues}
	var doc any
	if json.Unmarshal(input, &doc) == nil {
		v.read("", doc, 0)
	}
	return v
}

// read reads a value and the name of the parameter that contains it.
func (v *values) read(name string, value any, depth int) {
	if v.left--; v.left < 0 || depth > maxDepth {
		return
	}
	switch value := value.(type) {
	case string:
		if p, ok := pathOf(name, value); ok && len(v.paths) < maxValuePaths && !slices.Contains(v.paths, p) {
			v.paths = append(v.paths, p)
		}
	case []any:
		for _, one := range value {
			v.read(name, one, depth+1)
		}
	case map[string]any:
		v.command(value)
		for _, key := range sortedKeys(value) {
			v.read(key, value[key], depth+1)
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// command reads the command line in an object, with the arguments next to it.
func (v *values) command(object map[string]any) {
	for _, name := range []string{"command", "cmd", "commands", "script", "shell_command", "command_line", "commandLine"} {
		switch line := object[name].(type) {
		case string:
			if words := textsOf(object["args"]); len(words) > 0 {
				line += " " + quoted(words)
			}
			v.lines = append(v.lines, line)
		case []any:
			words := textsOf(line)
			if name == "commands" {
				v.lines = append(v.lines, words...)
			} else if len(words) > 0 {
				v.lines = append(v.lines, quoted(words))
			}
		}
	}
}

func textsOf(value any) []string {
	list, _ := value.([]any)
	var texts []string
	for _, one := range list {
		if text, ok := one.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// Forms of paths: of an absolute one, one relative to a folder, the name of a file, and a
// parameter whose values are paths in whatever form.
var (
	rooted    = lazyregexp.New(`^(/[^/*]|~/|~$|[A-Za-z]:[\\/]|\.{1,2}$|\.{1,2}[\\/])`)
	relative  = lazyregexp.New(`^[^\s<>|"{}()$;=&,@:-][^\s<>|"{}()$;=&,:]*[/\\][^\s<>|"{}()$;=&,:]*$`)
	fileName  = lazyregexp.New(`^([\w.+-]*\w\.[A-Za-z][A-Za-z0-9]{0,9}|\.[A-Za-z][\w.-]*|[A-Z][a-z]+file)$`)
	parameter = lazyregexp.New(`(?i)(path|file|uri|dir|directory|folder|source|destination|target)s?$`)
	contents  = lazyregexp.New(`(?i)(content|contents|text|body|message|description|query|prompt|title)$`)
)

// pathOf returns the path in a value.
func pathOf(name, value string) (string, bool) {
	if value == "" || len(value) > maxPathBytes || strings.ContainsAny(value, "\n\r\x00") {
		return "", false
	}
	if u, err := url.Parse(value); err == nil && u.Scheme == "file" {
		p := u.Path
		if len(p) > 2 && p[0] == '/' && p[2] == ':' { // file:///C:/x
			p = p[1:]
		}
		return p, p != ""
	}
	switch {
	case strings.Contains(value, "://"):
		return "", false
	case rooted().MatchString(value), relative().MatchString(value), fileName().MatchString(value):
		return value, true
	}
	return value, parameter().MatchString(name) && !contents().MatchString(name) && !strings.Contains(value, "  ")
}
