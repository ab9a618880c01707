package relay

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
)

// ResumeConfig says how work is taken up.
type ResumeConfig struct {
	// Claim takes the work for this relay's agent, for TTL, from another one too
	// with TakeOver.
	Claim    bool
	TTL      time.Duration
	TakeOver bool
	// Strict refuses (CodeConflict) when files changed since the checkpoint.
	Strict bool
	// Template replaces that of the prompt; empty: [handoff.DefaultTemplate].
	Template string
	// ContractFile is where the contract is, when it is not where it is looked
	// for.
	ContractFile string
}

// Resumption is what an agent needs to continue.
type Resumption struct {
	View
	Verdict  handoff.Verdict
	Contract *handoff.Contract
	// Prompt is Markdown.
	Prompt string
	// Claim is nil when none was asked for.
	Claim *perdure.HandoffClaim
}

// Resume looks at the work, judges the files, and writes the prompt with which
// an agent continues. It fails with CodeNotFound when there is nothing to
// continue.
func (r *Relay) Resume(ctx context.Context, cfg ResumeConfig) (*Resumption, error) {
	view, err := r.Look(ctx)
	if err != nil {
		return nil, err
	}
	if !view.Open() {
		return nil, nothing(view)
	}
	out := &Resumption{View: *view}
	if out.Verdict, err = r.Staleness(ctx, view); err != nil {
		return nil, err
	}
	if cfg.Strict && out.Verdict.Summary != handoff.AllFresh {
		return nil, &perdure.Error{Code: perdure.CodeConflict, Op: "resume work", Msg: "files changed since the checkpoint, or cannot be judged",
			Hint: "`perdure handoff stale` names them; without --strict the prompt tells to read them again"}
	}
	about := view.Ledger.Resume()
	if view.Handoff.ID == 0 {
		about = view.Shown.Resume()
	}
	about.Agent, about.Verdict = r.Agent, &out.Verdict
	if about.Work.Verification.ContractRef != "" {
		about.Contract, about.ContractErr = r.contract(view, cfg.ContractFile)
		out.Contract = about.Contract
	}
	if out.Prompt, err = about.Prompt(cfg.Template); err != nil {
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

// claim claims the work; what so far only the file knows is recorded first.
func (r *Relay) claim(ctx context.Context, out *Resumption, cfg ResumeConfig) (perdure.HandoffClaim, error) {
	if out.Handoff.ID == 0 {
		agent := r.Agent
		r.Agent = "" // to look is not to work
		u, err := r.Apply(ctx)
		r.Agent = agent
		if err != nil {
			return perdure.HandoffClaim{}, err
		}
		out.Handoff = u.Handoff
	}
	return r.Claim(ctx, out.Task.ID, cfg.TTL, cfg.TakeOver)
}

func nothing(v *View) error {
	e := &perdure.Error{Code: perdure.CodeNotFound, Op: "resume work", Msg: "there is no checkpoint of \"" + v.Task.ID + "\"",
		Hint: "`perdure handoff start` begins one"}
	if v.Handoff.EndedAt != nil {
		e.Msg = "the work on \"" + v.Task.ID + "\" is done"
		e.Hint = "`perdure handoff log` shows it; `perdure handoff start` begins it again"
	}
	return e
}

// Staleness judges whether the files are still as the work left them: by the
// ledger, or by what the file alone tells.
func (r *Relay) Staleness(ctx context.Context, v *View) (handoff.Verdict, error) {
	switch {
	case v.open():
		return v.Ledger.Staleness(ctx, r.Location.Root)
	case v.Shown != nil:
		return v.Shown.Staleness(ctx, r.Location.Root)
	}
	return handoff.Verdict{}, nothing(v)
}

// contract finds the verification contract of the work.
func (r *Relay) contract(v *View, file string) (*handoff.Contract, error) {
	ref := v.Ledger.Verification.ContractRef
	if ref == "" {
		return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "find contract", Msg: "the work names no verification contract",
			Hint: "`perdure handoff verify --contract US-003.verificationContract` names one"}
	}
	files := handoff.ContractFiles(v.Document, r.Location, r.Place)
	if file != "" {
		files = []string{file}
	}
	return handoff.FindContract(ref, files...)
}
