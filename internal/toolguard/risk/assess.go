package risk

import (
	"bytes"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/check/project"
)

// Where says where a call is made.
type Where struct {
	// Root is the workspace, Dir the folder that relative paths count from; both
	// absolute. Dir defaults to Root.
	Root, Dir string
	// Home is the user's home folder; may be empty.
	Home string
	// Own are folders of perdure's besides those named .perdure; absolute.
	Own []string
	// Protected, when set, tells of further files that decide what is checked, by
	// their paths in the workspace.
	Protected func(rel string) bool
}

// Finding is a risk of a call.
type Finding struct {
	Rule
	// Target is the file or the part of the command line that it is about.
	Target string `json:"target"`
}

// maxFindings bounds the findings of a call.
const maxFindings = 100

// maxCommand bounds the command lines that are read, in bytes; longer ones are
// Unreadable.
const maxCommand = 256 << 10

// Assess returns the risks of a call, the gravest first; none for a call that
// only reads. It never fails: what cannot be read is a risk.
func Assess(c *agent.ToolCall, at Where) []Finding {
	if at.Dir == "" {
		at.Dir = at.Root
	}
	a := newAssessment(at)
	switch c.Kind {
	case agent.ToolRead, agent.ToolSearch, agent.ToolFetch, agent.ToolThink:
		return nil
	case agent.ToolDelete:
		for _, p := range c.Paths {
			a.removes(p, false)
		}
	case agent.ToolMove:
		for _, p := range c.Paths {
			a.moves(p)
		}
	case agent.ToolEdit, agent.ToolExecute, agent.ToolOther:
		for _, p := range c.Paths {
			if c.Command == "" || c.Kind == agent.ToolOther {
				a.writes(p)
			}
		}
	}
	if c.Command != "" {
		a.command(c.Command, 0)
	}
	if c.Kind == agent.ToolEdit && bytes.Contains(c.Input, []byte("*** ")) { // which files are deleted, only it says
		var given map[string]any
		if json.Unmarshal(c.Input, &given) == nil {
			for _, member := range given {
				if text, ok := member.(string); ok {
					a.patch(text)
				}
			}
		}
	}
	slices.SortStableFunc(a.found, func(x, y Finding) int {
		switch {
		case graver(x.Level, y.Level):
			return -1
		case graver(y.Level, x.Level):
			return 1
		}
		return 0
	})
	return a.found
}

// Strictest is the answer to all findings together; Allow without any.
func Strictest(findings []Finding) Answer {
	strictest := Allow
	for _, f := range findings {
		if stricter(f.Answer, strictest) {
			strictest = f.Answer
		}
	}
	return strictest
}

type assessment struct {
	at    Where
	found []Finding
	names []string
	// patched is the file that the last line of a patch was about.
	patched string
	// vars and aliases are those that the command line sets.
	vars, aliases map[string]string
	// scripts are files that the command line writes, by their paths.
	scripts map[string]string
}

func newAssessment(at Where) *assessment {
	return &assessment{at: at, vars: make(map[string]string), aliases: make(map[string]string),
		scripts: make(map[string]string)}
}

// maxNames bounds the names of a command line.
const maxNames = 1000

// Names are the absolute paths of what may be files that a command line is about: all
// its words but for those that only the shell knows. Patterns are as they are written.
func Names(line string, at Where) []string {
	if at.Dir == "" {
		at.Dir = at.Root
	}
	a := newAssessment(at)
	a.command(line, 0)
	return a.names
}

// named keeps a word that may be a file.
func (a *assessment) named(word string) {
	if word == "" || strings.HasPrefix(word, "-") || strings.Contains(word, unknown) || len(a.names) >= maxNames {
		return
	}
	if !filepath.IsAbs(word) {
		word = filepath.Join(a.at.Dir, word)
	}
	if !slices.Contains(a.names, word) {
		a.names = append(a.names, word)
	}
}

func (a *assessment) add(p Pattern, target string) {
	for _, f := range a.found {
		if f.Pattern == p && f.Target == target {
			return
		}
	}
	if len(a.found) < maxFindings {
		a.found = append(a.found, Finding{rule(p), target})
	}
}

// unknown stands for a word that only the shell knows.
const unknown = "\x00"

// place is where a path leads: relative to the workspace, with slashes; outside
// tells that it is not in it.
func (a *assessment) place(name string) (rel string, outside bool) {
	name = filepath.ToSlash(name)
	if rest, ok := strings.CutPrefix(name, "~"); ok && a.at.Home != "" && (rest == "" || rest[0] == '/') {
		name = filepath.ToSlash(a.at.Home) + rest
	}
	if !path.IsAbs(name) && !filepath.IsAbs(name) {
		name = path.Join(filepath.ToSlash(a.at.Dir), name)
	}
	name, root := path.Clean(name), path.Clean(filepath.ToSlash(a.at.Root))
	if name == root {
		return ".", false
	}
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/"); ok {
		return rest, false
	}
	return name, true
}

// harmless are places that everybody writes to.
func harmless(name string) bool {
	switch name {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-":
		return true
	}
	return strings.HasPrefix(name, "/tmp/") || strings.HasPrefix(name, "/var/tmp/") || strings.HasPrefix(name, "/dev/fd/")
}

// writes is for a file that is written.
func (a *assessment) writes(name string) {
	if name == "" || strings.Contains(name, unknown) {
		return
	}
	rel, outside := a.place(name)
	switch class := project.Classify(rel).Class; {
	case a.held(rel, outside):
		a.add(WriteOwn, name)
	case outside && harmless(rel):
	case own(rel) || class == project.OwnFile:
		a.add(WriteOwn, name)
	case outside:
		a.add(WriteOutside, name)
	case strings.HasPrefix(rel, ".git/"):
		a.repository(rel, name)
	case class == project.TestFile || class == project.Snapshot:
		a.add(WriteTest, name)
	case class.Protected() || !outside && a.at.Protected != nil && a.at.Protected(rel):
		a.add(WriteGuard, name)
	}
}

// repository is for a file of git's that is written. Messages of commits are, too.
func (a *assessment) repository(rel, name string) {
	switch rest := strings.TrimPrefix(rel, ".git/"); {
	case rest == "config" || strings.HasPrefix(rest, "hooks/"):
		a.add(SkipChecks, name)
	case rest == "HEAD" || rest == "index" || rest == "packed-refs" || strings.HasPrefix(rest, "refs/") ||
		strings.HasPrefix(rest, "objects/"):
		a.add(RewriteHistory, name)
	}
}

// moves is for a file that is moved away or written by a move.
func (a *assessment) moves(name string) {
	if name == "" || strings.Contains(name, unknown) {
		return
	}
	if rel, outside := a.place(name); !outside && (project.Classify(rel).Class == project.TestFile || testFolder(rel)) {
		a.add(DeleteTest, name)
		return
	}
	a.writes(name)
}

// removes is for a file or folder that is deleted, with all that is in it when
// whole is set.
func (a *assessment) removes(name string, whole bool) {
	if strings.Contains(name, unknown) {
		if whole {
			a.add(DeleteTree, strings.ReplaceAll(name, unknown, "…"))
		} else {
			a.add(DeleteFiles, strings.ReplaceAll(name, unknown, "…"))
		}
		return
	}
	bare := strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(name, "*"), ".*"), "/")
	if bare == "" && strings.HasPrefix(name, "/") {
		bare = "/"
	}
	rel, outside := a.place(bare)
	class := project.Classify(rel).Class
	switch {
	case everything(rel, outside, a.at):
		a.add(DeleteAll, name)
	case a.held(rel, outside) || own(rel) || class == project.OwnFile:
		a.add(WriteOwn, name)
	case outside && harmless(rel):
	case outside:
		a.add(WriteOutside, name)
	case class == project.TestFile || testFolder(rel):
		a.add(DeleteTest, name)
	case class.Protected() || !outside && a.at.Protected != nil && a.at.Protected(rel):
		a.add(WriteGuard, name)
	case whole && !product(rel):
		a.add(DeleteTree, name)
	case !product(rel):
		a.add(DeleteFiles, name)
	}
}

// own tells whether a file is one of perdure's.
func own(rel string) bool {
	return slices.Contains(strings.Split(rel, "/"), ".perdure")
}

// held tells whether a file is in a folder of perdure's that has another name.
func (a *assessment) held(rel string, outside bool) bool {
	name := rel
	if !outside {
		name = path.Join(filepath.ToSlash(a.at.Root), rel)
	}
	return slices.ContainsFunc(a.at.Own, func(dir string) bool {
		dir = path.Clean(filepath.ToSlash(dir))
		return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
	})
}

// everything tells whether a place holds the workspace or the repository.
func everything(rel string, outside bool, at Where) bool {
	if !outside {
		return rel == "." || rel == ".git" || strings.HasPrefix(rel, ".git/")
	}
	root := path.Clean(filepath.ToSlash(at.Root))
	return rel == "/" || strings.HasPrefix(root, strings.TrimSuffix(rel, "/")+"/") || at.Home != "" &&
		rel == path.Clean(filepath.ToSlash(at.Home))
}

// testFolder tells whether a folder holds tests by its name.
func testFolder(rel string) bool {
	switch path.Base(rel) {
	case "test", "tests", "__tests__", "spec", "specs", "e2e", "testdata":
		return true
	}
	return false
}

// product tells whether a file is one that tools make anew.
func product(rel string) bool {
	for _, part := range strings.Split(rel, "/") {
		switch part {
		case "node_modules", "dist", "build", "target", "out", "bin", "obj", "__pycache__", ".pytest_cache", ".cache",
			"coverage", "tmp", ".next", ".venv":
			return true
		}
	}
	return strings.HasSuffix(rel, ".pyc") || strings.HasSuffix(rel, ".o") || strings.HasSuffix(rel, ".log") ||
		strings.HasSuffix(rel, ".tmp")
}
