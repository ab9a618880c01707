package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/checkconfig"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
)

// protected lists the changes since the trusted snapshot of files that the check
// hangs on: what the completion command runs, perdure's own files, and configuration of CI,
// runners, linters and coverage that got weaker, whatever patterns detection has. They stay a
// regression until they are reverted or a person approves them.
func (r *run) protected(ctx context.Context, l *look, found *detect.Report) ([]regression.Regression, error) {
	g := regression.Regression{Type: string(hook.ProtectedChange), Severity: string(hook.High)}
	var texts []string
	add := func(file, text string) {
		if !l.by.Waives(file) && len(g.Files) < maxFailing {
			g.Files = append(g.Files, file)
			texts = append(texts, text)
		}
	}
	var configs []checkconfig.File
	for i := range l.since.Changes {
		c := &l.since.Changes[i]
		if why := r.protectedChange(c, l.by); why != "" {
			add(c.Path, fmt.Sprintf("%s %s (%s)", c.Path, c.Kind, why))
			continue
		}
		class, protects := project.Configures(c.Path, c.From)
		if !protects {
			continue
		}
		f, err := r.configuration(ctx, c, l.since)
		if err != nil {
			return nil, err
		}
		f.Class = class
		configs = append(configs, f)
	}
	for _, w := range checkconfig.Compare(configs) {
		if w.Level == checkconfig.Weaker && !reported(found, w.Path) {
			add(w.Path, fmt.Sprintf("%s (%s)", w.Path, w.Text))
		}
	}
	if len(g.Files) == 0 {
		return nil, nil
	}
	slices.Sort(g.Files)
	g.Files = slices.Compact(g.Files)
	g.Text = "files that the check depends on were changed: " + strings.Join(texts, ", ")
	return []regression.Regression{g}, nil
}

// reported reports whether detection reported a weaker configuration, also one that is waived.
// found may be nil.
func reported(found *detect.Report, file string) bool {
	if found == nil {
		return false
	}
	is := func(f *detect.Finding) bool {
		return f.Pattern == "protected-file" && f.File == file && f.Action == detect.Act
	}
	return slices.ContainsFunc(found.Findings, func(f detect.Finding) bool { return is(&f) }) ||
		slices.ContainsFunc(found.Waived, func(w detect.Waived) bool { return is(&w.Finding) })
}

// sinceTrusted is what changed since the trusted snapshot; nothing where no check
// looks.
func (r *run) sinceTrusted(ctx context.Context, now workspace.ID) (*evidence.Between, error) {
	b := &evidence.Between{From: r.trusted(), To: now}
	if r.cfg.Plain {
		return b, nil
	}
	var err error
	b.Changes, err = r.files.Diff(ctx, b.From, b.To)
	b.Changes = r.checkFiles.Judged(b.Changes)
	return b, refusal(err)
}

// trusted is the snapshot that changes are compared with: the baseline as the check left it, or the
// last one that a person approved.
func (r *run) trusted() workspace.ID {
	return cmp.Or(r.state.Trusted, r.state.Checked, r.state.Baseline)
}

// protectedChange says why any change of a file counts; empty when it does not.
func (r *run) protectedChange(c *workspace.Change, by *regression.Ruled) string {
	judges := project.Judges(r.cfg.Until, r.cfg.Task)
	for _, name := range []string{c.Path, c.From} {
		switch file := project.Classify(name); {
		case name == "":
		case c.Kind != workspace.Added && slices.Contains(judges, name):
			return "the completion command runs it"
		case file.Class == project.OwnFile:
			return file.Why
		case by.Protects(name):
			return "the settings protect it"
		}
	}
	return ""
}

// configuration returns both versions of a file that configures checks.
func (r *run) configuration(ctx context.Context, c *workspace.Change, b *evidence.Between) (checkconfig.File, error) {
	var f checkconfig.File
	var err error
	if c.Old != nil {
		f.OldPath = c.Old.Path
	}
	if c.New != nil {
		f.NewPath = c.New.Path
	}
	if f.Old, err = r.content(ctx, b.From, c.Old); err != nil {
		return f, err
	}
	f.New, err = r.content(ctx, b.To, c.New)
	return f, err
}

// content is what a file held; nothing when it was not there or is not a file.
func (r *run) content(ctx context.Context, id workspace.ID, f *workspace.File) ([]byte, error) {
	const most = 4 << 20 // manifests are small
	if f == nil || f.Kind != workspace.KindFile || f.Size > most {
		return nil, nil
	}
	text, err := r.files.ReadFile(ctx, id, f.Path)
	return text, refusal(err)
}
