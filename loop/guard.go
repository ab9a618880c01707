package loop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/loop/turnguard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
)

// maxRisky is how many risky calls of an iteration are kept.
const maxRisky = 100

// callsFile is the name of the journal of tool calls.
const callsFile = "tool-calls.jsonl"

// callsPath is where the loop's journal of tool calls is.
func (r *run) callsPath() string { return filepath.Join(r.e.dir(&r.l.Tree), callsFile) }

// policy is how calls of tools are judged.
func (r *run) policy() *policy.Policy {
	return &policy.Policy{Root: r.files.Root(), Own: []string{r.e.cfg.Dir}, Answers: answers(r.cfg.RiskAnswers),
		Allowed: r.state.Allowed}
}

func answers(set map[string]config.RiskAnswer) map[risk.Pattern]risk.Answer {
	to := make(map[risk.Pattern]risk.Answer, len(set))
	for pattern, answer := range set {
		to[risk.Pattern(pattern)] = risk.Answer(answer)
	}
	return to
}

// guard guards the calls of a turn. The settings of detection count as they were when
// it began.
func (r *run) guard(ctx context.Context, journal *policy.Journal, asks, hooked bool) (*turnguard.Guard, error) {
	cfg := turnguard.Config{Journal: journal, LoopID: ID(&r.l.Tree), Iteration: r.state.Run.Number, Asks: asks,
		Hooked: hooked,
		Room:   reinforce.MaxSession - reinforce.Tokens(r.state.Run.Reminder), Handlers: r.ask, Log: r.log.Append,
		Snapshot: r.riskySnapshot, Logger: r.e.cfg.Logger}
	if !r.cfg.Plain {
		by, err := r.ruledBy(ctx, &state.Outcome{}, r.trusted()) // faults in them are reported with the iteration
		if err != nil {
			return nil, err
		}
		cfg.Policy = r.policy()
		cfg.Policy.Protected = by.Protects
		cfg.Detect = by.Input()
	}
	return turnguard.New(ctx, cfg), nil
}

// riskySnapshot takes a snapshot before a risky call, if one is to be taken.
func (r *run) riskySnapshot(ctx context.Context, level risk.Level) (workspace.ID, error) {
	high := level == risk.High || level == risk.Critical
	if r.cfg.SnapshotRisky == config.SnapshotNever || r.cfg.SnapshotRisky == config.SnapshotHigh && !high {
		return "", nil
	}
	id, _, err := r.files.Snapshot(ctx)
	return id, err
}

// takeCalls takes over what the journal has of calls since it was read last: after a
// turn, or after a crash in one. What is taken twice is taken once, since the place is
// written down with it. Calls in denied, by ID, were denied by the agent's own permissions, which the
// journal does not know.
func (r *run) takeCalls(denied map[string]bool) error {
	lines, next, err := policy.ReadJournal(r.callsPath(), r.state.CallsRead)
	if err != nil {
		return err
	}
	t := &r.state.Run
	for i := range lines {
		l := &lines[i]
		if l.What == policy.Ended {
			if at := slices.IndexFunc(t.Risky, func(k policy.Risky) bool { return k.CallID == l.CallID }); at >= 0 {
				t.Risky[at].After = l.After
			}
			continue
		}
		if l.Answer != "" && !policy.Allowed(l.Answer) {
			t.Denied++
		}
		if l.Answer == "" && l.CallID != "" && denied[l.CallID] {
			l.Answer = risk.Block
		}
		t.Calls, t.Wanted = append(t.Calls, l.Risky), append(t.Wanted, l.Wanted...)
		if l.Pattern == "" {
			continue
		}
		t.Risky = append(t.Risky, l.Risky)
		r.note(EventRisky, map[string]any{"iteration": l.Iteration, "tool": l.Tool, "target": l.Target,
			"risk_pattern": l.Pattern,
			"risk_level":   l.Level, "answer": l.Answer, "snapshot": l.Snapshot})
	}
	t.Risky, t.Calls = slices.Clone(t.Risky[max(0, len(t.Risky)-maxRisky):]), slices.Clone(
		t.Calls[max(0, len(t.Calls)-maxRisky):])
	r.state.CallsRead = next
	return nil
}

// riskGate asks a person about the calls that were refused until then.
func (r *run) riskGate(out *state.Outcome) (string, error) {
	wanted := r.state.Run.Wanted
	return r.openGate(perdure.GateDestructive, perdure.GateQuestion{
		Title: fmt.Sprintf("the agent requests a call that is not allowed: %s", clip.Bytes(wanted[0], 200)),
		Text:  "- " + strings.Join(wanted, "\n- ") + "\n\n" + r.describe(out),
		Options: []perdure.GateOption{
			{Answer: answerApprove, Effect: "these calls are allowed from now on, and the loop continues"},
			{Answer: answerContinue, Effect: "the loop continues without them; the reason (--reason) is added to the next " +
				"prompt"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}
