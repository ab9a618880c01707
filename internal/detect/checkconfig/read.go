package checkconfig

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// setting is a value in a configuration file. Items of lists have their index in the path,
// as in "#3", or their ID, as in "#id ruff".
type setting struct {
	path  []string
	value string
	line  int
}

// key returns the innermost key, without indices.
func (s *setting) key() string {
	for i := len(s.path) - 1; i >= 0; i-- {
		if !strings.HasPrefix(s.path[i], "#") {
			return s.path[i]
		}
	}
	return ""
}

// group returns the path without indices, by which both versions are compared.
func (s *setting) group() string {
	var b strings.Builder
	for _, p := range s.path {
		if !strings.HasPrefix(p, "#") || strings.HasPrefix(p, "#id ") {
			b.WriteString("." + strings.ToLower(strings.TrimPrefix(p, "#id ")))
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// format is the form of a file.
type format uint8

const (
	inCode format = iota // settings among the code of a program
	inYAML
	inJSON
	inTOML
	inINI
	inXML
	inMake
	inShell
	inLines
)

// limits of what is read.
const (
	maxBytes    = 1 << 20
	maxSettings = 20_000
	maxDepth    = 60
)

// iniName and lineName match files without a telling extension.
var (
	iniName  = lazyregexp.New(`^(\.flake8|\.?pylintrc|\.coveragerc|\.editorconfig|\.globalconfig)$|\.(ini|cfg|properties)$`)
	lineName = lazyregexp.New(`^(\.eslintignore|\.rspec|\.semgrepignore|codeowners|\.taprc|\.rubocop|config)$|\.sln$`)
	makeName = lazyregexp.New(`^(gnu)?makefile$|^justfile$`)
)

// formatOf returns the format of a file by its name and its first byte.
func formatOf(name string, text []byte) format {
	base := strings.ToLower(path.Base(name))
	switch ext := path.Ext(base); {
	case strings.Contains(name, ".husky/"), ext == ".sh", ext == ".bash", bytes.HasPrefix(text, []byte("#!/bin/")):
		return inShell
	case makeName().MatchString(base):
		return inMake
	case iniName().MatchString(base):
		return inINI
	case lineName().MatchString(base):
		return inLines
	case ext == ".yml", ext == ".yaml", ext == ".neon", strings.HasSuffix(base, ".neon.dist"):
		return inYAML
	case ext == ".json", ext == ".jsonc", ext == ".json5":
		return inJSON
	case ext == ".toml":
		return inTOML
	}
	switch first := bytes.TrimSpace(text); {
	case bytes.HasPrefix(first, []byte("<")) && !bytes.HasPrefix(first, []byte("<?php")):
		return inXML
	case bytes.HasPrefix(first, []byte("{")) && strings.HasPrefix(base, "."):
		return inJSON
	case path.Ext(base) == base && strings.HasPrefix(base, "."): // .eslintrc, .nycrc
		return inYAML
	}
	return inCode
}

// read returns the settings of a file, and whether it could be read.
func read(name string, text []byte) ([]setting, bool) {
	if len(text) > maxBytes || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 || conflict(text) {
		return nil, false
	}
	var all []setting
	ok := true
	switch formatOf(name, text) {
	case inYAML:
		all, ok = readYAML(name, text)
	case inJSON:
		all, ok = readJSON(text)
	case inTOML:
		all, ok = readTOML(text)
	case inXML:
		all, ok = readXML(text)
	case inINI:
		all = readINI(text)
	case inMake:
		all = readMake(text)
	case inShell:
		all = []setting{{path: []string{"run"}, value: string(text), line: 1}}
	case inLines:
		all = readLines(name, text)
	default:
		all = readCode(name, text)
	}
	if len(all) > maxSettings {
		return nil, false
	}
	return joinWords(all), ok
}

// joinWords joins the words of commands that are lists in a list.
func joinWords(all []setting) []setting {
	var out []setting
	for _, s := range all {
		n := len(s.path)
		word := n > 2 && strings.HasPrefix(s.path[n-1], "#") && strings.HasPrefix(s.path[n-2], "#") &&
			runKey().MatchString(s.key())
		if word {
			s.path = s.path[:n-1]
			if last := len(out) - 1; last >= 0 && slices.Equal(out[last].path, s.path) {
				out[last].value += " " + s.value
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// conflict reports whether a text has the marks of an unfinished merge.
func conflict(text []byte) bool {
	has := func(mark string) bool { return bytes.Contains(append([]byte("\n"), text...), []byte("\n"+mark)) }
	return has("<<<<<<< ") && has(">>>>>>> ")
}
