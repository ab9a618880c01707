package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// Limits of the files compared for a call, so that an agent does not wait.
const (
	maxFiles    = 500
	maxBytes    = 4 << 20
	maxFindings = 20
)

// Before holds the files that a call may touch, read before the call.
type Before struct {
	root, dir string
	call      agent.ToolCall
	files     map[string][]byte // by path in the workspace, with slashes
	bytes     int
	skipped   []string
}

// Evidence is what a call did to tests and checks, as far as files show it.
type Evidence struct {
	// TestsBefore and TestsAfter count the tests in the touched files.
	TestsBefore int `json:"tests_before"`
	TestsAfter  int `json:"tests_after"`
	// Findings are the facts and strong signs, at most maxFindings.
	Findings []detect.Finding `json:"findings,omitempty"`
	// Skipped lists what was not compared, and why.
	Skipped []string `json:"skipped,omitempty"`
}

// LookBefore reads the files that a risky call may touch.
func (p *Policy) LookBefore(c *agent.ToolCall, dir string, j *Judgement) *Before {
	b := &Before{root: p.Root, dir: p.folder(dir), call: *c, files: make(map[string][]byte)}
	for _, name := range b.names() {
		if err := b.read(name, j.Destructive()); err != nil {
			b.skip("%s: %s", name, err)
		}
	}
	for _, f := range j.Findings {
		if f.Pattern == risk.Unreadable || strings.Contains(f.Target, "…") {
			b.skip("%s: the files are known only to the shell", f.Target)
		}
	}
	return b
}

func (b *Before) skip(format string, args ...any) {
	if text := clip.Bytes(fmt.Sprintf(format, args...), maxTarget); len(b.skipped) < maxFindings &&
		!slices.Contains(b.skipped, text) {
		b.skipped = append(b.skipped, text)
	}
}

// names returns the absolute paths that the call names; glob patterns are expanded.
func (b *Before) names() []string {
	var all []string
	for _, given := range b.call.Paths {
		all = append(all, target(absolute(b.dir, given)))
	}
	for _, name := range risk.Names(b.call.Command, risk.Where{Root: b.root, Dir: b.dir}) {
		all = append(all, name)
		if strings.ContainsAny(name, "*?[") {
			if files, err := filepath.Glob(name); err == nil {
				all = append(all, files[:min(len(files), maxFiles)]...)
			}
		}
	}
	return all
}

// errTooMuch is the reason for files beyond the limits.
var errTooMuch = errors.New("more files than the limit")

// read reads a file, or with whole a folder. A missing file and one outside of the
// workspace are ignored.
func (b *Before) read(name string, whole bool) error {
	info, err := os.Lstat(name)
	rel, outside := b.place(name)
	switch {
	case err != nil || outside:
		return nil //nolint:nilerr // a word that is not a file
	case info.Mode().IsRegular():
		return b.take(name, rel, info.Size())
	case !info.IsDir() || !whole:
		return nil
	}
	return filepath.WalkDir(name, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be compared
		}
		rel, _ := b.place(at)
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".perdure" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || syntax.LanguageOf(rel) == nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		return b.take(at, rel, info.Size())
	})
}

// readMoved reads the files of a folder that have the names of others.
func (b *Before) readMoved(folder string, others map[string][]byte) {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return
	}
	for rel := range others {
		if b.read(filepath.Join(folder, path.Base(rel)), false) != nil {
			return // the limit is reached
		}
	}
}

// place returns the path in the workspace.
func (b *Before) place(name string) (rel string, outside bool) {
	rel, err := filepath.Rel(b.root, name)
	return filepath.ToSlash(rel), err != nil || !filepath.IsLocal(rel)
}

func (b *Before) take(name, rel string, size int64) error {
	if _, have := b.files[rel]; have {
		return nil
	}
	if len(b.files) >= maxFiles || b.bytes+int(min(size, maxBytes+1)) > maxBytes {
		return errTooMuch
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil //nolint:nilerr // what cannot be read cannot be compared
	}
	b.bytes += len(text)
	b.files[rel] = text
	return nil
}

// LookAfter compares the files with their state after the call; by selects the signs that
// count.
func (b *Before) LookAfter(ctx context.Context, by *detect.Input) (*Evidence, error) {
	after := &Before{root: b.root, dir: b.dir, call: b.call, files: make(map[string][]byte)}
	for rel := range b.files {
		if after.read(filepath.Join(b.root, filepath.FromSlash(rel)), false) != nil {
			b.skip("%s: %s", rel, errTooMuch)
			delete(b.files, rel) // its state before is not known
		}
	}
	for _, name := range after.names() { // New files, also in a folder that was named.
		if after.read(name, false) != nil {
			b.skip("%s: %s", name, errTooMuch)
		}
		after.readMoved(name, b.files)
	}
	e := &Evidence{Skipped: b.skipped}
	var changes []detect.Change
	all := maps.Clone(b.files)
	maps.Copy(all, after.files)
	for rel := range all {
		was, wasThere := b.files[rel]
		is, isThere := after.files[rel]
		if wasThere && isThere && string(was) == string(is) {
			continue
		}
		e.TestsBefore, e.TestsAfter = e.TestsBefore+tests(rel, was), e.TestsAfter+tests(rel, is)
		changes = append(changes, change(rel, was, wasThere, is, isThere))
	}
	if len(changes) == 0 {
		return e, nil
	}
	in := *by
	in.Changes = func(yield func(detect.Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
	report, err := detect.Run(ctx, &in)
	if err != nil {
		return e, fmt.Errorf("compare files after a tool call: %w", err)
	}
	for _, f := range report.Findings {
		if f.Tier <= 2 && f.Action != detect.Tell && len(e.Findings) < maxFindings {
			f.Diff = "" // a line of the journal is short
			e.Findings = append(e.Findings, f)
		}
	}
	for _, s := range report.Skipped {
		e.Skipped = append(e.Skipped, clip.Bytes(s.File+": "+s.Why, maxTarget))
	}
	e.Skipped = e.Skipped[:min(len(e.Skipped), maxFindings)]
	return e, nil
}

func change(rel string, was []byte, wasThere bool, is []byte, isThere bool) detect.Change {
	var c detect.Change
	if wasThere {
		c.Old = detect.Version{Path: rel, Content: was, Size: int64(len(was))}
	}
	if isThere {
		c.New = detect.Version{Path: rel, Content: is, Size: int64(len(is))}
	}
	info := project.Classify(rel)
	if c.Fixture = info.Class == project.Snapshot; info.Class == project.OwnFile {
		c.Protected = info.Why
	}
	c.Configures, _ = project.Configures(rel)
	return c
}

// tests counts the tests in a file.
func tests(rel string, text []byte) int {
	lang := syntax.LanguageOf(rel)
	if lang == nil || !utf8.Valid(text) {
		return 0
	}
	return len(syntax.Read(lang, rel, string(text)).Tests)
}

// Text returns the message to the agent; empty if there are no findings.
func (e *Evidence) Text() string {
	if e == nil || len(e.Findings) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Your last call changed tests or checks:")
	for i := range e.Findings {
		b.WriteString("\n- " + e.Findings[i].Summary())
	}
	if e.TestsBefore != e.TestsAfter {
		fmt.Fprintf(&b, "\nThese files had %d tests and now have %d.", e.TestsBefore, e.TestsAfter)
	}
	b.WriteString("\nIf you did not intend this, undo it now. If you did, state the reason in your answer.")
	return b.String()
}
