package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
)

// protected lists the changes since the trusted snapshot of files that the check
// hangs on: configuration of CI, runners, linters and coverage, and what the
// completion command runs. They stay a regression until they are reverted or
// a person approves them.
func (r *run) protected(ctx context.Context, since *evidence.Between, by *regression.Ruled) ([]regression.Regression,
	error) {
	g := regression.Regression{Type: string(hook.ProtectedChange), Severity: string(hook.High)}
	var texts []string
	for _, c := range since.Changes {
		why, err := r.protectedChange(ctx, &c, since.From, since.To)
		if err != nil {
			return nil, err
		}
		if why == "" && (by.Protects(c.Path) || by.Protects(c.From)) {
			why = "the settings protect it"
		}
		if why != "" && !by.Waives(c.Path) && len(g.Files) < maxFailing {
			g.Files = append(g.Files, c.Path)
			texts = append(texts, fmt.Sprintf("%s %s (%s)", c.Path, c.Kind, why))
		}
	}
	if len(g.Files) == 0 {
		return nil, nil
	}
	g.Text = "files that the check depends on were changed: " + strings.Join(texts, ", ")
	return []regression.Regression{g}, nil
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
	return b, refusal(err)
}

// trusted is the snapshot that protected files are compared with.
func (r *run) trusted() workspace.ID { return cmp.Or(r.state.Trusted, r.state.Baseline) }

// protectedChange says why a change counts; empty when it does not.
func (r *run) protectedChange(ctx context.Context, c *workspace.Change, before, now workspace.ID) (string, error) {
	judges := project.Judges(r.cfg.Until, r.cfg.Task)
	for _, name := range []string{c.Path, c.From} {
		if name != "" && c.Kind != workspace.Added && slices.Contains(judges, name) {
			return "the completion command runs it", nil
		}
	}
	file := project.Classify(c.Path)
	if c.From != "" && !file.Class.Protected() {
		file = project.Classify(c.From)
	}
	if file.Class.Protected() {
		return firstOf(file.Why, string(file.Class)+" configuration"), nil
	}
	if file.Class != project.Manifest {
		return "", nil
	}
	old, err := r.content(ctx, before, c.Old)
	if err != nil {
		return "", err
	}
	is, err := r.content(ctx, now, c.New)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, p := range project.ChangedParts(c.Path, old, is) {
		parts = append(parts, p.Name)
	}
	return strings.Join(parts, ", "), nil
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
