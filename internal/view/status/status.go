// Package status writes the state, the usage and the waiting of runs in words, the
// same in all views.
package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
)

// Cost writes the known cost of u; calls of unknown price are named, never counted
// as free. It is NoCost if nothing is known to have been used: no call, or failed ones.
func Cost(u perdure.Usage) string {
	switch {
	case u.UnpricedCalls > 0 && u.CostUSD > 0:
		return fmt.Sprintf("%s + %s of unknown price", human.Dollars(u.CostUSD), human.Count(u.UnpricedCalls, "call"))
	case u.UnpricedCalls > 0:
		return "price unknown"
	case !used(u):
		return NoCost
	}
	return human.Dollars(u.CostUSD)
}

// NoCost stands for the cost of nothing.
const NoCost = "–"

// used reports whether usage is known.
func used(u perdure.Usage) bool { return u.CostUSD > 0 || u.InputTokens+u.OutputTokens > 0 }

// CostCard returns the cost as a figure, and a name that says what is unknown about it.
func CostCard(u perdure.Usage) (name, value string) {
	switch {
	case u.UnpricedCalls == 0:
		return "cost", Cost(u)
	case u.CostUSD == 0:
		return "cost: the price is unknown", "?"
	}
	return "cost without " + human.Count(u.UnpricedCalls, "call") + " of unknown price", human.Dollars(u.CostUSD)
}

// Figures writes the time, in milliseconds, and the cost of a task, without those that
// are zero.
func Figures(ms float64, u perdure.Usage, between string) string {
	var parts []string
	if ms > 0 {
		parts = append(parts, human.Seconds(ms/1000))
	}
	if u.CostUSD > 0 { // an unknown price is named once, in the sums
		parts = append(parts, human.Dollars(u.CostUSD))
	}
	return strings.Join(parts, between)
}

// Usage writes calls, tokens and cost in one line.
func Usage(u perdure.Usage) string {
	parts := []string{human.Count(u.Calls, "call")}
	if u.InputTokens+u.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", humanize.Comma(u.InputTokens),
			humanize.Comma(u.OutputTokens)))
	}
	if used(u) || u.UnpricedCalls > 0 {
		parts = append(parts, Cost(u))
	}
	if u.UncertainCalls > 0 {
		parts = append(parts, Uncertain(u))
	}
	return strings.Join(parts, ", ")
}

// Uncertain writes the number of calls with unknown outcome and what they probably took,
// which is not part of the other figures.
func Uncertain(u perdure.Usage) string {
	text := human.Count(u.UncertainCalls, "call") + " with unknown outcome"
	switch {
	case u.UncertainTokens > 0 && u.UncertainCostUSD > 0:
		text += fmt.Sprintf(" (at most %s tokens, %s)", human.Compact(u.UncertainTokens), human.Dollars(u.UncertainCostUSD))
	case u.UncertainTokens > 0:
		text += fmt.Sprintf(" (at most %s tokens)", human.Compact(u.UncertainTokens))
	}
	return text
}

// Gate writes how many tasks of a run wait at a gate, and the command that shows
// its question.
func Gate(tree perdure.TreeID, number, waiting int) string {
	return fmt.Sprintf("%s waiting at gate %d; `perdure answer %s` shows what is asked",
		human.Count(int64(waiting), "task"), number, tree)
}

// State writes the state of a tree: what it waits for, if it rests at a gate, interrupted, if the
// process that ran it died, or one of the states.
func State(s *client.Status) string {
	switch {
	case !s.State.Terminal() && s.Gate != nil && s.Gate.Rests:
		return waitsForAnswer
	case s.Interrupted:
		return "interrupted"
	}
	return string(s.State)
}

const waitsForAnswer = "waits for your answer"

// TaskState writes the state of a task in words: an attempt that is repeated, and what a task
// waits for. shown is that of [OfTask].
func TaskState(shown perdure.State, attempts int, hasChildren bool) string {
	switch {
	case shown == perdure.Queued && attempts > 0:
		return "queued again"
	case shown == perdure.Waiting && hasChildren:
		return "waits for its parts"
	case shown == perdure.Waiting:
		return waitsForAnswer
	}
	return string(shown)
}

// RowState writes the state of a row of an outline.
func RowState(r *client.OutlineRow) string { return TaskState(OfRow(r), r.Attempts, r.Children > 0) }

// RowNote returns the state of a row in words where the sign of the state does not show it.
func RowNote(r *client.OutlineRow) string {
	if words := RowState(r); r.State == perdure.Queued && words != string(r.State) || words == waitsForAnswer {
		return words
	}
	return ""
}

// Percent writes the share of the work that is done, "–" if it is unknown.
func Percent(p *perdure.Progress) string {
	if p.Planned == nil && !p.State.Terminal() {
		return "–"
	}
	return human.WholePercent(p.Percent)
}

// Bar returns the bar and the share of the work that is done.
func Bar(p *perdure.Progress, width int) string {
	return human.Bar(p.Percent, width) + " " + Percent(p)
}

// Tasks returns the number of tasks, those that are planned included.
func Tasks(p *perdure.Progress) string {
	switch {
	case p.Planned != nil:
		return human.Count(max(*p.Planned, p.Total), "task")
	case p.State.Terminal(): // of a server of an older version
		return human.Count(p.Total, "task")
	}
	return human.Count(p.Total, "task") + " so far"
}

// leastIdle is the least idle time that is shown, in seconds.
const leastIdle = 10

// Took writes how long tasks were running, and how long none was.
func Took(p *perdure.Progress) string {
	idle := p.ElapsedSeconds - p.WorkedSeconds
	if p.WorkedSeconds == 0 || idle < leastIdle || idle < p.ElapsedSeconds/10 {
		return human.Seconds(p.ElapsedSeconds)
	}
	return human.Seconds(p.WorkedSeconds) + " (and " + human.Seconds(idle) + " idle)"
}

// Time writes how long a tree took, or when it probably ends; "–" if no process runs it.
func Time(p *perdure.Progress) string {
	switch {
	case p.State.Terminal():
		return "took " + Took(p)
	case p.Interrupted:
		return "–"
	}
	return "ETA " + human.ETA(p.ETASeconds)
}

// Interrupted tells how to continue an interrupted tree.
func Interrupted(tree perdure.TreeID) string {
	return "interrupted: `perdure resume " + string(tree) + "` continues"
}

// Skipped is what views show instead of the state of a completed task that did not run.
const Skipped perdure.State = "skipped"

// OfTask returns what views show as the state of a task: Partial if it completed without
// some of its parts, Skipped if it completed because a condition was false.
func OfTask(state perdure.State, partial, skipped bool) perdure.State {
	switch {
	case state == perdure.Completed && partial:
		return perdure.Partial
	case state == perdure.Completed && skipped:
		return Skipped
	}
	return state
}

// OfRow is OfTask for a row of an outline.
func OfRow(r *client.OutlineRow) perdure.State { return OfTask(r.State, r.Partial, r.Skipped) }

// Mark returns the sign of a state. Each has another shape; the sign of no state is
// "…".
func Mark(state perdure.State) string {
	switch state {
	case perdure.Completed:
		return "✓"
	case perdure.Partial:
		return "◐"
	case Skipped:
		return "↷"
	case perdure.Failed:
		return "✗"
	case perdure.Running:
		return "●"
	case perdure.Waiting:
		return "◌"
	case perdure.Cancelled:
		return "⊘"
	case perdure.Queued:
		return "○"
	}
	return "…"
}

// Slowest names the task that has been running longest and the model it waits for.
func Slowest(task perdure.TaskID, prompt string, since time.Duration, model string) string {
	const label = 32
	text := fmt.Sprintf("slowest: %s %q %s", task, clip.Runes(human.OneLine(prompt), label), human.Duration(since))
	if model != "" {
		text += " in " + human.OneLine(model)
	}
	return text
}

// TokenFlag is added to the command of an answer that needs the token of a gate.
const TokenFlag = " --token -"

// Approver writes in one line who can answer a gate; "" if it does not say.
func Approver(a perdure.Approver) string {
	switch a {
	case perdure.ApproverTerminal:
		return "Takes an answer from a terminal, or with its token. Programs under your user name can open terminals, too; " +
			"loop.approver token takes the token only."
	case perdure.ApproverToken:
		return "Takes an answer with its token only."
	case perdure.ApproverUser:
		return "Takes an answer from another user than the one who runs the loop."
	case perdure.ApproverAny:
		return "Takes an answer from every program that no agent has started."
	}
	return ""
}
