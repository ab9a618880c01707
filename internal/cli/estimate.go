package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

// dryRun prints what a run takes. Nothing is created or sent.
func (a *app) dryRun(ctx context.Context, l *config.Loaded, f *runFlags, req client.TreeRequest) error {
	if f.detach {
		return env.UsageError("omit --detach", "--dry-run starts nothing")
	}
	return a.With(ctx, l, env.Plan, func(b *env.Backend) error {
		report, err := a.upload(ctx, b, f)
		if err != nil {
			return err
		}
		defer a.dropContext(ctx, b, &report)
		if len(f.contexts) > 0 {
			a.noteContext(&report)
		}
		req.ContextID = report.ID
		est, err := b.Estimate(ctx, req)
		if err != nil {
			return err
		}
		err = a.Print(est, func() { a.PrintTable(estimateLines(&est)) })
		if err == nil {
			a.noteShort(&est)
			a.Note("dry run: nothing was sent to a model, and no tree was created")
		}
		return err
	})
}

// estimateLines returns an estimate as the lines of a table.
func estimateLines(e *rlm.Estimate) []string {
	planner := e.Planner
	if e.PlannerReason != "" {
		planner += ": " + e.PlannerReason
	}
	lines := []string{"planner\t" + human.OneLine(planner)}
	add := func(name, value string) { lines = append(lines, name+"\t"+human.OneLine(value)) }
	if e.Parts != nil {
		add("parts", humanize.Comma(*e.Parts))
	}
	add("calls", callsText(e))
	add("tokens in", tokensText(e.LeastInputTokens, e.InputTokens))
	out := "unknown"
	if e.OutputTokens != nil {
		out = atMostText(*e.OutputTokens)
	}
	add("tokens out", out)
	add("cost", costText(e))
	add("time", timeText(e))
	if flags := budgetFlags(&e.Budget); flags != "" {
		add("budget", flags+" would be enough")
	}
	return lines
}

// estimateLine returns an estimate in one line.
func estimateLine(e *rlm.Estimate) string {
	noun := " calls"
	if e.Calls != nil && *e.Calls == 1 {
		noun = " call"
	}
	parts := []string{callsText(e) + noun, tokensText(e.LeastInputTokens, e.InputTokens) + " tokens in"}
	if e.OutputTokens != nil {
		parts = append(parts, atMostText(*e.OutputTokens)+" out")
	}
	return strings.Join(append(parts, costText(e), "time "+timeText(e)), ", ")
}

func callsText(e *rlm.Estimate) string {
	switch {
	case e.Calls == nil:
		return fmt.Sprintf("at least %d, as the model plans", e.LeastCalls)
	case *e.Calls == e.LeastCalls:
		return humanize.Comma(*e.Calls)
	}
	return atMostText(*e.Calls)
}

func atMostText(n int64) string {
	if n == 0 {
		return "0"
	}
	return "at most " + humanize.Comma(n)
}

func tokensText(least int64, most *int64) string {
	switch {
	case most == nil:
		return "unknown"
	case *most == 0:
		return "0"
	case least == *most:
		return "about " + humanize.Comma(*most)
	case least < *most/2: // says little
		return atMostText(*most)
	}
	return fmt.Sprintf("about %s to %s", humanize.Comma(least), humanize.Comma(*most))
}

func costText(e *rlm.Estimate) string {
	switch {
	case e.CostUSD == nil && e.Calls == nil && e.LeastCostUSD != nil:
		return "cost unknown"
	case e.CostUSD == nil:
		return "price unknown"
	case *e.CostUSD == 0:
		return "free"
	case e.LeastCostUSD == nil || *e.LeastCostUSD < *e.CostUSD/5:
		return "at most " + human.Dollars(*e.CostUSD)
	}
	return human.Dollars(*e.LeastCostUSD) + " to " + human.Dollars(*e.CostUSD)
}

func timeText(e *rlm.Estimate) string {
	if e.Seconds == nil {
		return "unknown: " + e.TimeBasis
	}
	return fmt.Sprintf("about %s (%s)", human.Seconds(*e.Seconds), e.TimeBasis)
}

// budgetFlags returns the flags of budgets that suffice.
func budgetFlags(b *rlm.Budget) string {
	var flags []string
	if b.Calls != nil {
		flags = append(flags, flagText("--budget-calls", float64(*b.Calls)))
	}
	if b.Tokens != nil && *b.Tokens > 0 {
		flags = append(flags, flagText("--budget-tokens", float64(*b.Tokens)))
	}
	if b.CostUSD != nil && *b.CostUSD > 0 {
		flags = append(flags, flagText("--budget-usd", *b.CostUSD))
	}
	return strings.Join(flags, " ")
}

// flagText returns a flag with its value. Dollars are rounded up to four places.
func flagText(flag string, value float64) string {
	if flag == "--budget-usd" {
		value = math.Ceil(value*1e4-1e-6) / 1e4
	}
	return flag + " " + strconv.FormatFloat(value, 'f', -1, 64)
}

// noteShort notes the budgets that may end before the run does.
func (a *app) noteShort(e *rlm.Estimate) {
	for _, s := range e.Short {
		given, enough := flagText(s.Flag, s.Value), flagText(s.Flag, s.Needed)
		switch {
		case s.Unfit > 0 && e.Parts != nil && s.Unfit == *e.Parts:
			a.Note("warning: no part fits into %s; %s is enough for all", given, enough)
		case s.Unfit > 0 && e.Parts != nil:
			a.Note("warning: %d of %d parts do not fit into %s; %s is enough for all", s.Unfit, *e.Parts, given, enough)
		default:
			a.Note("warning: %s may not be enough for all parts; %s is", given, enough)
		}
	}
}

// confirm estimates a run if it has a budget or is to be confirmed, and asks the user whether
// it may cost more than the amount of --confirm-above.
func (a *app) confirm(ctx context.Context, b *env.Backend, f *runFlags, req client.TreeRequest) error {
	l := b.Config
	limited := l.BudgetCalls > 0 || l.BudgetTokens > 0 || l.BudgetUSD > 0
	if !limited && l.ConfirmAbove == 0 {
		return nil
	}
	est, err := b.Estimate(ctx, req)
	if err != nil {
		return err
	}
	a.noteShort(&est)
	return a.agreeTo(&est, l.ConfirmAbove, f.yes)
}

// agreeTo asks the user whether an estimate above a limit is agreed to; 0 is no limit. An
// unknown cost counts as above.
func (a *app) agreeTo(est *rlm.Estimate, limit float64, yes bool) error {
	if limit == 0 || est.CostUSD != nil && *est.CostUSD <= limit {
		return nil
	}
	above := fmt.Sprintf("the run may cost more than $%s", strconv.FormatFloat(limit, 'f', -1, 64))
	if est.CostUSD == nil {
		above = fmt.Sprintf("the cost is unknown, which counts as more than $%s", strconv.FormatFloat(limit, 'f', -1, 64))
	}
	a.Note("%s", estimateLine(est))
	if yes {
		return nil
	}
	const hint = "use --yes to start it without a question, or raise --confirm-above"
	if !a.CanAsk() {
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: above + ", and there is no terminal to ask at", Hint: hint}
	}
	if !a.Agrees(above + ". Start it?") {
		return &env.Exit{Status: env.StatusFailed, Msg: "not started: " + above, Hint: hint}
	}
	return nil
}
