package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/verify/decider"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/workspace"
)

// maxDeciders is how many deciding files a record keeps.
const maxDeciders = 50

// deciders finds the changed files that decide what the check runs.
func (r *run) deciders(ctx context.Context, l *look) (*decider.Found, error) {
	if r.cfg.Plain || len(l.since.Changes) == 0 {
		return &decider.Found{}, nil
	}
	was, is := r.pathsOf(ctx, l.since.From), r.pathsOf(ctx, l.since.To)
	reader := func(id workspace.ID) func(string) ([]byte, error) {
		return func(name string) ([]byte, error) {
			text, err := evidence.ReadTrusted(ctx, r.files, id, name)
			return text, refusal(err)
		}
	}
	v := &decider.Versions{Was: was.has, Is: is.has, Names: was.names, Allowed: l.by.Waives,
		Old: reader(l.since.From), New: reader(l.since.To), Installed: r.installed}
	found, err := v.Find(l.since.Changes)
	return found, errors.Join(err, was.err, is.err)
}

// paths are the files and links of a snapshot, read when they are needed.
type paths struct {
	read func() ([]workspace.File, error)
	err  error
	list []string
	set  map[string]bool
}

func (p *paths) load() {
	if p.set != nil {
		return
	}
	files, err := p.read()
	p.err, p.set = err, make(map[string]bool, len(files))
	for i := range files {
		if f := &files[i]; f.Kind != workspace.KindFolder {
			p.list, p.set[f.Path] = append(p.list, f.Path), true
		}
	}
}

func (p *paths) has(name string) bool {
	p.load()
	return p.set[name]
}

func (p *paths) names() []string {
	p.load()
	return p.list
}

func (r *run) pathsOf(ctx context.Context, id workspace.ID) *paths {
	return &paths{read: func() ([]workspace.File, error) {
		files, _, err := r.files.Files(ctx, id)
		return files, refusal(err)
	}}
}

// installed reports whether a path of the workspace matches a pattern.
func (r *run) installed(pattern string) bool {
	found, err := doublestar.Glob(os.DirFS(r.files.Root()), pattern, doublestar.WithNoFollow())
	return err == nil && len(found) > 0
}

// keptDeciders returns the deciding files that the record of an iteration keeps.
func keptDeciders(f *decider.Found) []decider.Decider {
	if f == nil {
		return nil
	}
	return f.Deciders[:min(len(f.Deciders), maxDeciders)]
}

// decidersNote is the part of the reason of a completed loop that names the changed files that
// decide what the check runs.
func decidersNote(out *state.Outcome) string {
	const most = 5
	var texts []string
	reset := 0
	for i := range out.Deciders {
		d := &out.Deciders[i]
		texts = append(texts, clip.OneLine(d.String()))
		if !d.Allowed && !d.Adds {
			reset++
		}
	}
	if len(texts) == 0 {
		return ""
	}
	more := ""
	if n := len(texts) - most; n > 0 {
		texts, more = texts[:most], fmt.Sprintf(" and %d more", n)
	}
	text := "; changed files decide what the check runs: " + strings.Join(texts, ", ") + more
	switch v := out.CleanCopy; {
	case reset == 0:
	case v != nil && v.Deciders == cleancheck.Passed:
		text += "; it passes with their earlier version too"
	case out.Accepted:
		text += "; that was approved"
	default:
		text += "; it was not repeated with their earlier version"
	}
	return text
}

// needsDeciders reports whether the only regression of an iteration is that its check passes only
// with the agent's version of files that decide what it runs.
func needsDeciders(out *state.Outcome) bool {
	v := out.CleanCopy
	return v != nil && v.State == cleancheck.Failed && v.Deciders == cleancheck.Failed && len(out.Regressions) == 1 &&
		out.Regressions[0].Text == v.Why
}

// deciderGate asks a person about a check that passes only with the agent's version of files that
// decide what it runs.
func (r *run) deciderGate(ctx context.Context, out *state.Outcome) (string, error) {
	id, v := ID(&r.l.Tree), out.CleanCopy
	var allow []string
	for _, name := range v.Files[:min(len(v.Files), maxInTitle)] {
		if strings.HasSuffix(name, "/") {
			name += "**"
		}
		allow = append(allow, "--allow '"+name+"'")
	}
	return r.openGate(perdure.GateRecovery, perdure.GateQuestion{
		Title: clip.OneLine(fmt.Sprintf("iteration %d: %s", out.Iteration, v.Why)),
		Text: "The code may be as before: " + v.Why + ".\n\nIf the change is right, allow the path, then answer retry:\n\n" +
			"- `perdure loop resume " + id + " --no-wait " + strings.Join(allow, " ") + "`\n\n" + r.describe(out),
		Diff: r.diff(ctx, out), Options: []perdure.GateOption{
			{Answer: answerRetry, Effect: "the check is repeated in the workspace and in a clean copy, with the paths that " +
				"are allowed then"},
			{Answer: answerApprove, Effect: "the changes are accepted, and the current test results become the baseline"},
			{Answer: answerReject, Effect: "the files from before the iteration are restored, and the loop continues"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}
