package risk

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/check/project"
)

// empties assesses a file whose content a command removes or replaces. A file that is missing or
// empty loses nothing.
func (a *assessment) empties(name string) {
	if name == "" || strings.Contains(name, unknown) || a.at.Filled == nil {
		return
	}
	rel, outside := a.place(name)
	class := project.Classify(rel).Class
	if outside || class == project.TestFile || class.Protected() || product(rel) {
		return // writes assesses these
	}
	if a.at.Filled(path.Join(filepath.ToSlash(a.at.Root), rel)) {
		a.add(DeleteFiles, name)
	}
}

// truncates assesses a redirection of a command that prints nothing.
func (a *assessment) truncates(s *syntax.Stmt) {
	silent := s.Cmd == nil
	if words, ok := a.called(s); ok && len(words) > 0 {
		text, known := a.printed(s)
		silent = words[0] == ":" || words[0] == "true" || known && text == "" && words[0] != "cat" ||
			len(words) == 2 && words[0] == "cat" && words[1] == "/dev/null"
	}
	for _, r := range s.Redirs {
		if silent && r.Word != nil && (r.Op == syntax.RdrOut || r.Op == syntax.RdrClob) {
			a.empties(a.text(r.Word))
		}
	}
}

// overwrites assesses a copy or a move onto existing files. One of a file that the line itself
// has written is an edit.
func (a *assessment) overwrites(options []string, to string, from []string) {
	if has(options, 'n', "no-clobber") || has(options, 'b', "backup") || has(options, 'u', "update") {
		return
	}
	for _, f := range from {
		if written, _ := a.place(f); !slices.Contains(a.outputs, written) {
			a.empties(to)
			a.empties(path.Join(to, path.Base(f)))
		}
	}
}

// unpacks assesses an archive that is unpacked over existing files.
func (a *assessment) unpacks(name string, options, args []string) {
	switch name {
	case "tar":
		extracts := has(options, 'x', "extract") || len(args) > 0 && !strings.HasPrefix(args[0], "-") &&
			strings.Contains(args[0], "x")
		if extracts && (has(options, 'U', "unlink-first") || has(options, 0, "overwrite") ||
			has(options, 0, "recursive-unlink")) {
			a.add(DeleteFiles, shown(name+" "+strings.Join(args, " ")))
		}
	case "unzip":
		if has(options, 'o', "") && !has(options, 'd', "") && !has(options, 'l', "") {
			a.add(DeleteFiles, shown(name+" "+strings.Join(args, " ")))
		}
	}
}
