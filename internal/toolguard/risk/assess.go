package risk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/clip"
)

// Where is the place in which a call is made.
type Where struct {
	// Root is the workspace, Dir the folder for relative paths; both absolute. Dir defaults
	// to Root.
	Root, Dir string
	// Home is the user's home folder; may be empty.
	Home string
	// Commands are answers of the user to commands, in the form of the table of DestroyExternal.
	Commands map[string]Answer
	// Own are folders of perdure in addition to those named .perdure; absolute.
	Own []string
	// Protected, if set, reports whether a file configures checks, by its path in the
	// workspace.
	Protected func(rel string) bool
	// Filled, if set, reports whether a file exists and has content, by its absolute path.
	Filled func(name string) bool
}

// Finding is a risk of a call.
type Finding struct {
	Rule
	// Target is the file, or the part of the command line, that the risk is about.
	Target string `json:"target"`
	// Set is the answer that the user has set for this command; empty if none.
	Set Answer `json:"-"`
}

// maxFindings limits the findings of a call.
const maxFindings = 100

// maxCommand limits the command lines that are parsed, in bytes; longer ones are
// Unreadable.
const maxCommand = 256 << 10

// Assess returns the risks of a call, the worst first; none for a call that only reads. A
// call that cannot be parsed is a risk, not an error.
func Assess(c *agent.ToolCall, at Where) []Finding {
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
	if c.Kind == agent.ToolOther || c.Kind == agent.ToolDelete {
		a.externalTool(c.Name, c.Input)
	}
	if isPowerShell(c.Name) {
		a.powershell(c.Command, 0)
	} else if c.Command != "" {
		a.command(c.Command, 0)
	}
	var members map[string]any // only the patch names the deleted files
	if c.Kind == agent.ToolEdit && bytes.Contains(c.Input, []byte("*** ")) && json.Unmarshal(c.Input, &members) == nil {
		for _, member := range members {
			if text, ok := member.(string); ok {
				a.patch(text)
			}
		}
	}
	order := []Level{Critical, High, Medium, Low}
	slices.SortStableFunc(a.found, func(x, y Finding) int {
		return slices.Index(order, x.Level) - slices.Index(order, y.Level)
	})
	return a.found
}

// Strictest returns the strictest answer of the findings; Allow without findings.
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
	// patched is the file of the previous line of a patch.
	patched string
	// vars and aliases are set by the command line.
	vars, aliases map[string]string
	// filled are variables that are not empty where they are used; nounset is set if the shell
	// ends at one that is not set.
	filled  map[string]bool
	nounset bool
	// scripts are files that the command line writes, by path.
	scripts map[string]string
	// isTrial is set if only the patterns that are found count, for a part of a line.
	isTrial bool
	// outputs are files that the command line writes by a redirection.
	outputs []string
}

func newAssessment(at Where) *assessment {
	at.Dir = cmp.Or(at.Dir, at.Root)
	return &assessment{at: at, vars: make(map[string]string), aliases: make(map[string]string),
		filled: make(map[string]bool), scripts: make(map[string]string)}
}

// maxNames limits the names of a command line.
const maxNames = 1000

// Names returns the absolute paths of all words of a command line that may be files,
// except those that only the shell knows. Glob patterns are not expanded.
func Names(line string, at Where) []string {
	a := newAssessment(at)
	a.command(line, 0)
	return a.names
}

// named adds a word that may be a file.
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
	known := slices.ContainsFunc(a.found, func(f Finding) bool { return f.Pattern == p && f.Target == target })
	if !known && len(a.found) < maxFindings {
		a.found = append(a.found, Finding{Rule: rule(p), Target: target})
	}
}

// addSet adds a finding with the answer that the user has set.
func (a *assessment) addSet(p Pattern, target string, set Answer) {
	before := len(a.found)
	if a.add(p, target); len(a.found) > before {
		a.found[before].Answer, a.found[before].Set = set, set
	}
}

// unknown replaces a word that only the shell knows, empty one that may be empty as well.
const (
	unknown = "\x00"
	empty   = unknown + "\x01"
)

// conceal returns a word with an ellipsis for its unknown parts.
func conceal(word string) string {
	return strings.ReplaceAll(strings.ReplaceAll(word, empty, "…"), unknown, "…")
}

// shown returns a word, or a part of a command line, for a finding.
func shown(text string) string { return clip.Bytes(conceal(text), 120) }

// place returns a path relative to the workspace, with slashes; outside is set if it
// leads out of the workspace.
func (a *assessment) place(name string) (rel string, outside bool) {
	name = filepath.ToSlash(name)
	if rest, ok := strings.CutPrefix(name, "~"); ok && a.at.Home != "" && (rest == "" || rest[0] == '/') {
		name = filepath.ToSlash(a.at.Home) + rest
	}
	if !path.IsAbs(name) && !filepath.IsAbs(name) && !hasDrive(name) {
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

// hasDrive reports whether a path begins with a drive of Windows.
func hasDrive(name string) bool {
	return len(name) > 2 && name[1] == ':' && name[2] == '/' && letter(name[0])
}

// harmless reports whether a path is a common place for output, like /dev/null.
func harmless(name string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-"}, name) ||
		strings.HasPrefix(name, "/tmp/") || strings.HasPrefix(name, "/var/tmp/") || strings.HasPrefix(name, "/dev/fd/")
}

// writes assesses writing a file.
func (a *assessment) writes(name string) {
	if name == "" || strings.Contains(name, unknown) {
		return
	}
	rel, outside := a.place(name)
	switch class := project.Classify(rel).Class; {
	case a.held(rel, outside):
		a.add(WriteOwn, name)
	case outside && isDisk(rel):
		a.add(DeleteAll, name)
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
	case validates(rel):
		a.add(WriteValidation, name)
	}
}

// repository assesses writing a file of git. Commit messages are such files, too.
func (a *assessment) repository(rel, name string) {
	switch rest := strings.TrimPrefix(rel, ".git/"); {
	case rest == "config" || strings.HasPrefix(rest, "hooks/"):
		a.add(SkipChecks, name)
	case rest == "HEAD" || rest == "index" || rest == "packed-refs" || strings.HasPrefix(rest, "refs/") ||
		strings.HasPrefix(rest, "objects/"):
		a.add(RewriteHistory, name)
	}
}

// moves assesses a file that is moved away or overwritten by a move.
func (a *assessment) moves(name string) {
	if name == "" || strings.Contains(name, unknown) {
		return
	}
	rel, outside := a.place(withoutWildcards(name))
	switch {
	case everything(rel, outside, a.at):
		a.add(DeleteAll, name)
		return
	case !outside && (project.Classify(rel).Class == project.TestFile || testFolder(rel)):
		a.add(DeleteTest, name)
		return
	}
	a.writes(name)
}

// own reports whether a file is one of perdure's.
func own(rel string) bool { return slices.Contains(strings.Split(rel, "/"), ".perdure") }

// held reports whether a file is in one of Where.Own.
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

// testFolder reports whether the name of a folder says that it holds tests.
func testFolder(rel string) bool {
	return slices.Contains([]string{"test", "tests", "__tests__", "spec", "specs", "e2e", "testdata"}, path.Base(rel))
}
