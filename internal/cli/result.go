package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm"
)

// printResult prints the result of a tree that ended: the answer to standard output,
// details to standard error. The returned error decides the exit status.
func (a *app) printResult(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	r, err := b.Result(ctx, id)
	if err != nil {
		return err
	}
	err = a.Print(r, func() {
		if text := answerText(&r); text != "" {
			text = a.Out.Safe(strings.TrimRight(text, "\n") + footnotes(&r))
			a.Printf("%s%s\n", partialLine(&r), a.highlight(ctx, b, &r, text))
		}
	})
	if err != nil {
		return err
	}
	if a.Out.Stopped() {
		return &env.Exit{Status: env.StatusFailed, Msg: "write result: " + a.Out.Why(),
			Hint: fmt.Sprintf("`perdure result %s` prints the answer again", id)}
	}
	removeMark(b, id)
	a.noteDetails(&r.Details)
	s, err := b.Status(ctx, id)
	if err != nil {
		return err
	}
	a.Note("%s: %s in %s, %s", id, human.Count(s.Total, "task"), status.Took(&s.Progress), status.Usage(r.Usage))
	if why := reached(r.Limits); why != "" {
		a.Note("limit reached: %s", why)
	}
	return judge(&r, &s.Progress)
}

// partialLine returns the line before an answer in which parts are missing. Structured
// answers have none: programs read them.
func partialLine(r *client.Result) string {
	switch {
	case r.State != perdure.Partial || structured(r):
		return ""
	case !r.Resumable:
		return "(partial: an imported record, which is not executed)\n"
	case r.TooLong:
		return fmt.Sprintf("(partial: the conversation became longer than the model reads; `perdure resume %s --model M` "+
			"continues)\n", r.Tree)
	case r.MissingTotal == 0 && r.Cut:
		return fmt.Sprintf("(partial: an answer ends at the limit for answers; `perdure resume %s --max-output-tokens N` "+
			"asks for it again)\n", r.Tree)
	case r.MissingTotal == 0:
		return fmt.Sprintf("(partial: the answer is not what was asked for; `perdure resume %s` tries again)\n", r.Tree)
	case r.MissingTotal == 1:
		return fmt.Sprintf("(partial: 1 part is missing; `perdure resume %s` takes it up)\n", r.Tree)
	}
	return fmt.Sprintf("(partial: %s are missing; `perdure resume %s` takes them up)\n",
		human.Count(r.MissingTotal, "part"), r.Tree)
}

// structured reports whether the answer is a JSON value other than text.
func structured(r *client.Result) bool {
	return len(r.Answer) > 0 && r.Answer[0] != '"' && string(r.Answer) != "null"
}

// answerText returns the answer as text. JSON is indented.
func answerText(r *client.Result) string {
	if structured(r) {
		var b bytes.Buffer
		if json.Indent(&b, r.Answer, "", "  ") == nil {
			return b.String()
		}
	}
	return r.Text()
}

// footnotes returns the quotes that the answer refers to as [^1], [^2] and so on, none for a
// structured answer.
func footnotes(r *client.Result) string {
	if structured(r) {
		return ""
	}
	var b strings.Builder
	for i, c := range r.Citations {
		if c.Kind != model.CitedQuote {
			break // quotes come first
		}
		place := model.Citation{File: c.File, StartLine: c.StartLine, EndLine: c.EndLine, StartColumn: c.StartColumn,
			Cell: c.Cell}
		fmt.Fprintf(&b, "\n\n[^%d]: %s", i+1, place.Place())
		for line := range strings.SplitSeq(c.Text, "\n") {
			b.WriteString(strings.TrimRight("\n> "+line, " \t\r"))
		}
	}
	return b.String()
}

// highlight returns the passages of a ranked answer with the words of the prompt in bold, on a terminal
// with colors; other text as it is.
func (a *app) highlight(ctx context.Context, b *env.Backend, r *client.Result, text string) string {
	isRanked := len(r.Citations) > 0 && r.Citations[0].Kind == "" && !structured(r)
	if !a.Out.Color || !isRanked {
		return text
	}
	tree, err := b.Tree(ctx, r.Tree)
	if err != nil {
		return text
	}
	root, err := b.Task(ctx, tree.Root)
	if err != nil {
		return text
	}
	return extract.Highlight(root.Prompt, text)
}

// shownMissing bounds the number of missing parts that are listed.
const shownMissing = 5

// judge returns an error with an exit status for a result that is not complete.
func judge(r *client.Result, p *perdure.Progress) error {
	switch {
	case r.State == perdure.Cancelled:
		return &env.Exit{Status: env.StatusFailed, Msg: fmt.Sprintf("tree %q was cancelled", r.Tree) + because(r)}
	case r.State == perdure.Failed:
		return &env.Exit{Status: failedStatus(r.Error), Msg: fmt.Sprintf("tree %q failed", r.Tree) + because(r),
			Hint: takeUp(r, p)}
	case r.State == perdure.Partial:
		hint := takeUp(r, p)
		if r.Resumable && !r.TooLong && !r.Cut {
			hint = "the answer covers only the parts that finished; " + hint
		}
		return &env.Exit{Status: env.StatusIncomplete, Msg: incomplete(r), Hint: hint}
	}
	return nil
}

func because(r *client.Result) string {
	if r.Error == nil || r.Error.Message == "" {
		return ""
	}
	return ": " + r.Error.Message
}

func incomplete(r *client.Result) string {
	var b strings.Builder
	if r.MissingTotal == 0 {
		fmt.Fprintf(&b, "tree %q is partial", r.Tree)
		if r.Error == nil && len(r.Notes) > 0 {
			return b.String() + ": " + env.OneLine(r.Notes[len(r.Notes)-1], 200)
		}
		return b.String() + because(r)
	}
	fmt.Fprintf(&b, "tree %q is partial, %s missing", r.Tree, human.Count(r.MissingTotal, "part"))
	if why := commonError(r.Missing); why != "" {
		return b.String() + ": " + env.OneLine(why, 500)
	}
	for i, m := range r.Missing {
		if i == shownMissing && r.MissingTotal > shownMissing+1 {
			fmt.Fprintf(&b, "\n… and %d more", r.MissingTotal-shownMissing)
			break
		}
		fmt.Fprintf(&b, "\n%s: %s%s", m.Task, place(&m), env.OneLine(m.Error.Message, 200))
	}
	return b.String()
}

// commonError returns the error of all missing parts if their model answers no request, "" if they
// have others. The messages differ only in the number of tries.
func commonError(missing []client.MissingTask) string {
	other := func(m client.MissingTask) bool { return m.Error.Kind != rlm.KindFault }
	if len(missing) < 2 || slices.ContainsFunc(missing, other) {
		return ""
	}
	return slices.MinFunc(missing, func(x, y client.MissingTask) int {
		return cmp.Compare(len(x.Error.Message), len(y.Error.Message))
	}).Error.Message
}

// place names the files and lines of a missing part, with a colon, or returns "".
func place(m *client.MissingTask) string {
	if len(m.Files) == 0 {
		return ""
	}
	first := m.Files[0]
	text := fmt.Sprintf("%s:%d-%d", env.OneLine(first.File, 100), first.StartLine, first.EndLine)
	if more := len(m.Files) - 1 + m.MoreFiles; more > 0 {
		text += " and " + human.Count(int64(more), "more file")
	}
	return text + ": "
}

// failedStatus returns the exit status of a failed tree.
func failedStatus(e *perdure.TaskError) int {
	switch {
	case e != nil && (e.Kind == rlm.KindUnavailable || e.Kind == rlm.KindFault):
		return env.StatusUnavailable
	case e != nil && e.Kind == rlm.KindBudget:
		return env.StatusIncomplete
	}
	return env.StatusFailed
}

// takeUp returns the text for how to finish a tree whose parts are missing.
func takeUp(r *client.Result, p *perdure.Progress) string {
	if !r.Resumable {
		return fmt.Sprintf("an imported record is not executed: `perdure run` with its prompt starts a new tree; "+
			"`perdure tree %s` shows all tasks", r.Tree)
	}
	if r.TooLong {
		return fmt.Sprintf("`perdure resume %s --model M` continues with a model that reads more; --context-window N says "+
			"how much this one reads", r.Tree)
	}
	if r.Error != nil && r.Error.Kind == rlm.KindTooLong {
		return fmt.Sprintf("`perdure resume %s --model M` continues with a model that reads more", r.Tree)
	}
	if r.Cut && r.MissingTotal == 0 {
		return fmt.Sprintf("`perdure resume %s --max-output-tokens N` asks for the answers that were cut again, with a "+
			"higher limit", r.Tree)
	}
	command, higher := "perdure resume "+string(r.Tree), ""
	for _, l := range r.Limits {
		switch {
		case !l.Exceeded:
		case l.Limit == limitNode: // how many tasks are enough is in the error of the task
			higher = " with a higher " + l.Flag
		default:
			command += " " + l.Flag + " " + higherLimit(l, r.MissingTotal, p)
		}
	}
	return fmt.Sprintf("`%s`%s takes up the missing parts; `perdure tree %s` shows all tasks", command, higher, r.Tree)
}

// Margins of forecasts: what a part takes varies.
const (
	tokenMargin = 1.1
	timeMargin  = 1.25
)

// higherLimit returns the value of a flag with which the tree is expected to end: what the finished
// share of the work took, for all of it. It is twice the limit if that share is unknown.
func higherLimit(l perdure.LimitUse, missing int64, p *perdure.Progress) string {
	all := 2.0 // times what was used
	known := p != nil && p.Planned != nil && p.Percent > 0
	if known {
		all = 100 / p.Percent
	}
	forecast := float64(l.Used) * all
	if !known {
		forecast = 2 * float64(l.Value)
	}
	switch l.Limit {
	case limitCalls:
		return fmt.Sprint(max(int64(math.Ceil(forecast)), l.Used+missing+1, l.Value+1))
	case limitCost:
		return fmt.Sprintf("%.4g", max(forecast*tokenMargin, float64(l.Value)*tokenMargin)/1e6)
	case limitTime:
		left := 2 * milliseconds(l.Value)
		if known { // the limit counts from the resumption
			left = time.Duration(p.WorkedSeconds * (all - 1) * timeMargin * float64(time.Second))
		}
		return max(left.Round(time.Second), time.Second).String()
	}
	return fmt.Sprint(max(int64(math.Ceil(forecast*tokenMargin)), l.Value+1))
}
