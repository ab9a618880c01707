package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
)

// ResumeConfig configures [Recorder.Resume].
type ResumeConfig struct {
	// Claim claims the work for this recorder's agent for TTL; with TakeOver also
	// if another agent has a claim.
	Claim    bool
	TTL      time.Duration
	TakeOver bool
	// Strict fails with CodeConflict if files changed since the checkpoint.
	Strict bool
	// Template is the template of the prompt. Defaults to [handoff.DefaultTemplate].
	Template string
	// ContractFile is the file with the contract. Defaults to the one that is recorded, or else
	// to the usual files.
	ContractFile string
}

// Resumption is the result of [Recorder.Resume].
type Resumption struct {
	View
	Verdict  handoff.Verdict
	Contract *handoff.Contract
	// Prompt is Markdown.
	Prompt string
	// Claim is nil if none was requested.
	Claim *Claim
}

// Resume reads the work, compares the files with it, and returns the prompt with which an
// agent continues. It fails with CodeNotFound if no work is open.
func (r *Recorder) Resume(ctx context.Context, cfg ResumeConfig) (*Resumption, error) {
	view, err := r.Look(ctx)
	if err != nil {
		return nil, err
	}
	if !view.Open() {
		return nil, view.Nothing("resume work")
	}
	out := &Resumption{View: *view}
	if out.Verdict, err = r.Staleness(ctx, view); err != nil {
		return nil, err
	}
	if cfg.Strict && out.Verdict.Summary != handoff.AllFresh {
		return nil, strict(&out.Verdict)
	}
	about := view.Ledger.Resume()
	if !view.open() {
		about = view.Shown.Resume()
		about.Work.TaskID, about.Description = view.Task.ID, view.Task.Description
	}
	about.Agent, about.Verdict = r.Agent, &out.Verdict
	title, description := handoff.Describe(view.Task, handoff.ContractFiles(view.Document, r.Location, r.Place)...)
	about.Title, about.Description = cmp.Or(about.Title, title), cmp.Or(about.Description, description)
	if about.Work.Verification.ContractRef != "" {
		about.Contract, about.ContractErr = r.contract(view, cfg.ContractFile)
		out.Contract = about.Contract
	}
	if out.Prompt, err = about.Prompt(ctx, cfg.Template); err != nil {
		return nil, err
	}
	if cfg.Claim {
		claim, err := r.claim(ctx, out, cfg)
		if err != nil {
			return nil, err
		}
		out.Claim = &claim
	}
	return out, nil
}

// strict returns the error for work whose files are not all fresh.
func strict(v *handoff.Verdict) error {
	const most = 10
	var names []string
	for _, f := range v.Moved() {
		names = append(names, fmt.Sprintf("%s (%s)", f.Path, f.State))
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	if v.Unlisted > 0 {
		names = append(names, fmt.Sprintf("%d that the checkpoint does not name", v.Unlisted))
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "resume work",
		Msg:  "files changed since the checkpoint, or cannot be judged: " + strings.Join(names, ", "),
		Hint: "without --strict the prompt asks the agent to read them again"}
}

// claim claims the work. Before, it records a checkpoint that only the file has, and
// afterwards it updates a file that is behind.
func (r *Recorder) claim(ctx context.Context, out *Resumption, cfg ResumeConfig) (Claim, error) {
	if err := r.giveBack(ctx, out.Task.ID); err != nil {
		return Claim{}, err
	}
	if !out.open() {
		u, err := r.Apply(ctx)
		if err != nil {
			return Claim{}, err
		}
		out.Handoff = u.Handoff
	}
	claim, err := r.Claim(ctx, out.Task.ID, cfg.TTL, cfg.TakeOver)
	if err == nil && out.Behind {
		_, err = r.Apply(ctx)
	}
	return claim, err
}

// giveBack ends the claim of the recorder's own token, so that an agent can continue
// in a new session; a token of an earlier claim is dropped.
func (r *Recorder) giveBack(ctx context.Context, task string) error {
	if r.Token == "" {
		return nil
	}
	err := r.Release(ctx, task)
	if r.Token = ""; errors.Is(err, perdure.ErrLeaseLost) || errors.Is(err, perdure.ErrNotFound) {
		return nil
	}
	return err
}

// Nothing returns the error of an operation that needs open work.
func (v *View) Nothing(op string) error {
	e := &perdure.Error{Code: perdure.CodeNotFound, Op: op, Msg: "there is no checkpoint of \"" + v.Task.ID + "\"",
		Hint: "`perdure handoff start` creates one"}
	if v.Handoff.EndedAt != nil {
		e.Msg = "the work on \"" + v.Task.ID + "\" is done"
		e.Hint = "`perdure handoff log` shows it; `perdure handoff start` begins it again"
	}
	return e
}

// Staleness reports which files are still as the work left them, by the ledger or,
// without one, by the checkpoint in the file.
func (r *Recorder) Staleness(ctx context.Context, v *View) (handoff.Verdict, error) {
	switch {
	case v.open():
		return v.Ledger.Staleness(ctx, r.Location.Root)
	case v.Shown != nil:
		return v.Shown.Staleness(ctx, r.Location.Root)
	}
	return handoff.Verdict{}, v.Nothing("judge files")
}

// contract finds the verification contract of the work.
func (r *Recorder) contract(v *View, file string) (*handoff.Contract, error) {
	ref := v.Ledger.Verification.ContractRef
	if ref == "" {
		return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "find contract",
			Msg:  "the work names no verification contract",
			Hint: "`perdure handoff verify --contract US-003.verificationContract` names one"}
	}
	files := handoff.ContractFiles(v.Document, r.Location, r.Place)
	if own := v.Ledger.ContractFile; file == "" && own != "" {
		file = own
		if !filepath.IsAbs(own) {
			file = filepath.Join(r.Location.Root, filepath.FromSlash(own))
		}
	}
	if file != "" {
		files = []string{file}
	}
	return handoff.FindContract(ref, files...)
}
