package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/model"
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
			a.Printf("%s\n", a.Out.Safe(strings.TrimRight(text, "\n")+footnotes(&r)))
		}
	})
	if err != nil {
		return err
	}
	a.noteDetails(&r.Details)
	s, err := b.Status(ctx, id)
	if err != nil {
		return err
	}
	a.Note("%s: %s in %s, %s", id, human.Count(s.Total, "task"), human.Seconds(s.ElapsedSeconds), status.Usage(r.Usage))
	if why := reached(r.Limits); why != "" {
		a.Note("limit reached: %s", why)
	}
	err = judge(&r)
	if failed, ok := errors.AsType[*env.Exit](err); ok && r.State == perdure.Failed {
		failed.Hint = failedHint(ctx, b, id)
	}
	return err
}

// answerText returns the answer as text. JSON is indented.
func answerText(r *client.Result) string {
	if len(r.Answer) > 0 && r.Answer[0] != '"' && string(r.Answer) != "null" {
		var b bytes.Buffer
		if json.Indent(&b, r.Answer, "", "  ") == nil {
			return b.String()
		}
	}
	return r.Text()
}

// footnotes returns the quotes that the answer refers to as [^1], [^2] and so on.
func footnotes(r *client.Result) string {
	var b strings.Builder
	for i, c := range r.Citations {
		if c.Kind != model.CitedQuote {
			break // quotes come first
		}
		fmt.Fprintf(&b, "\n\n[^%d]: %s:%d-%d", i+1, c.File, c.StartLine, c.EndLine)
		for line := range strings.SplitSeq(c.Text, "\n") {
			b.WriteString(strings.TrimRight("\n> "+line, " \t\r"))
		}
	}
	return b.String()
}

// shownMissing bounds the number of missing parts that are listed.
const shownMissing = 5

// judge returns an error with an exit status for a result that is not complete.
func judge(r *client.Result) error {
	switch {
	case r.State == perdure.Cancelled:
		return &env.Exit{Status: env.StatusFailed, Msg: fmt.Sprintf("tree %q was cancelled", r.Tree) + because(r)}
	case r.State == perdure.Failed:
		return &env.Exit{Status: failedStatus(r.Error), Msg: fmt.Sprintf("tree %q failed", r.Tree) + because(r)}
	case r.Partial || r.MissingTotal > 0:
		return &env.Exit{Status: env.StatusIncomplete, Msg: incomplete(r),
			Hint: fmt.Sprintf("the answer covers only the parts that finished; `perdure tree %s` shows all", r.Tree)}
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
		fmt.Fprintf(&b, "tree %q is incomplete", r.Tree)
		if r.Error == nil && len(r.Notes) > 0 {
			return b.String() + ": " + env.OneLine(r.Notes[len(r.Notes)-1], 200)
		}
		return b.String() + because(r)
	}
	fmt.Fprintf(&b, "tree %q is incomplete, %s missing", r.Tree, human.Count(r.MissingTotal, "part"))
	for i, m := range r.Missing {
		if i == shownMissing && r.MissingTotal > shownMissing+1 {
			fmt.Fprintf(&b, "\n… and %d more", r.MissingTotal-shownMissing)
			break
		}
		fmt.Fprintf(&b, "\n%s: %s", m.Task, env.OneLine(m.Error.Message, 200))
	}
	return b.String()
}

// failedStatus returns the exit status of a failed tree.
func failedStatus(e *perdure.TaskError) int {
	switch {
	case e != nil && e.Kind == rlm.KindUnavailable:
		return env.StatusUnavailable
	case e != nil && e.Kind == rlm.KindBudget:
		return env.StatusIncomplete
	}
	return env.StatusFailed
}

// failedHint returns the hint for a failed tree: retrying its root keeps the finished
// parts and repeats the others.
func failedHint(ctx context.Context, b *env.Backend, id perdure.TreeID) string {
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return fmt.Sprintf("`perdure tree %s` shows its tasks", id)
	}
	return fmt.Sprintf("`perdure retry %s`, then `perdure resume %s`, retry the missing parts; `perdure tree %s` shows "+
		"all tasks", tree.Root, id, id)
}
