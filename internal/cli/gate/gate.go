// Package gate implements the command answer, and what `perdure loop answer` and
// the commands that follow a run or a loop share with it: showing a gate and
// asking for its answer.
package gate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// Target is whose gate is meant.
type Target struct {
	Tree perdure.TreeID
	// Name is what people call it, Command how an answer is given, Resume how it goes
	// on when nobody runs it.
	Name    string
	Command func(answer string) string
	Resume  string
}

// Run is the target for a tree by its ID.
func Run(id perdure.TreeID) *Target {
	return &Target{Tree: id, Name: string(id), Resume: "perdure resume " + string(id),
		Command: func(answer string) string { return "perdure answer " + string(id) + " " + answer }}
}

// Flags say what is answered.
type Flags struct {
	// Answer is the answer; "" shows the gate.
	Answer string

	gate                     int
	task, text, file, reason string
	asJSON                   bool
}

// Register adds the flags that all gates have.
func (f *Flags) Register(fl *pflag.FlagSet) {
	fl.IntVar(&f.gate, "gate", 0, "the `number` of the gate (default: the open one)")
	fl.StringVar(&f.reason, "reason", "", "why")
	fl.BoolVar(&f.asJSON, "json", false, "print the gate as one JSON object")
}

// Command makes `perdure answer`.
func Command(e *env.Env) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "answer [TREE] [ANSWER]",
		Short: "Answer the gate that a run or a loop waits at",
		Long: "Answer the gate that a run or a loop waits at. The gate of a run opens when no model of its chain answers " +
			"a task; all tasks for which that " +
			"is so wait at it. It takes retry (the models are asked again), manual (a task gets the result that you write), " +
			"skip (the tasks count " +
			"as failed) and abandon (the tree ends). Without an answer, show what is asked; without a tree, the gates that " +
			"are open.",
		Example: "perdure answer\n perdure answer tree-1a2b3c4d retry\n" +
			" perdure answer tree-1a2b3c4d manual --task task-0007 --file answer.txt",
		GroupID: env.GroupRun,
		Args:    env.Arguments(0, 2, "a tree and an answer"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.Do(cmd, env.Read, func(b *env.Backend) error {
				id, answer, err := which(cmd.Context(), e, b, args)
				f.Answer = answer
				if err != nil || id == "" {
					return err
				}
				return Answer(cmd.Context(), e, b, Run(id), &f)
			})
		},
	}
	f.Register(cmd.Flags())
	cmd.Flags().StringVar(&f.task, "task", "", "the one `task` that is meant, of several that wait")
	cmd.Flags().StringVar(&f.text, "text", "", "with manual: the `result` of the task")
	cmd.Flags().StringVar(&f.file, "file", "", "with manual: the `file` with the result of the task; - is standard input")
	cmd.MarkFlagsMutuallyExclusive("text", "file")
	return cmd
}

// which finds the tree that is meant: the one that is named, else the only one that
// waits. Of several it shows all, and names none.
func which(ctx context.Context, e *env.Env, b *env.Backend, args []string) (id perdure.TreeID, answer string,
	err error) {
	if len(args) > 0 {
		if id, err = perdure.ParseTreeID(args[0]); err == nil || len(args) == 2 {
			return id, strings.Join(args[1:], ""), err
		}
		answer = args[0]
	}
	open, err := b.OpenGates(ctx)
	switch {
	case err != nil:
		return "", "", err
	case len(open) == 0:
		return "", "", &perdure.Error{Code: perdure.CodeNotFound, Op: "answer gate", Msg: "no gate is open"}
	case len(open) == 1:
		return open[0].Tree, answer, nil
	case answer != "":
		return "", "", &perdure.Error{Code: perdure.CodeInvalid, Op: "answer gate",
			Msg:  fmt.Sprintf("%d gates are open; say which tree is meant", len(open)),
			Hint: "`perdure answer` shows them"}
	}
	for i := range open {
		e.Printf("%s  %s\n", open[i].Tree, e.Out.Safe(line(&open[i])))
	}
	return "", "", nil
}

// line is a gate in one line.
func line(g *perdure.Gate) string {
	title := string(g.Kind)
	if q, err := g.ParseQuestion(); err == nil {
		title = q.Title
	}
	if g.Waiting > 0 {
		title += " (" + human.Count(int64(g.Waiting), "task") + " waiting)"
	}
	return fmt.Sprintf("gate %d: %s", g.Number, title)
}

// Find returns a gate that is open, by its number; 0 is the first one.
func Find(gates []perdure.Gate, number int) (*perdure.Gate, bool) {
	at := slices.IndexFunc(gates,
		func(g perdure.Gate) bool { return g.AnsweredAt == nil && (number == 0 || g.Number == number) })
	if at < 0 {
		return nil, false
	}
	return &gates[at], true
}

// Answer answers the gate of a target, or shows it where there is no answer.
func Answer(ctx context.Context, e *env.Env, b *env.Backend, t *Target, f *Flags) error {
	gates, err := b.Gates(ctx, t.Tree)
	if err != nil {
		return err
	}
	g, ok := Find(gates, f.gate)
	if !ok {
		return &perdure.Error{Code: perdure.CodeNotFound, Op: "answer gate", Msg: t.Name + ": no gate is open"}
	}
	if f.Answer == "" {
		return show(e, g, t, f.asJSON)
	}
	d := perdure.GateDecision{Answer: f.Answer, By: env.User(), Reason: f.reason, Text: f.text}
	if f.task != "" {
		if d.Task, err = perdure.ParseTaskID(f.task); err != nil {
			return err
		}
	}
	if f.file != "" {
		if d.Text, err = read(e, f.file); err != nil {
			return err
		}
	}
	answered, err := b.AnswerGate(ctx, t.Tree, g.Number, d)
	if err != nil {
		return err
	}
	if f.asJSON {
		return e.PrintJSON(&answered)
	}
	what := fmt.Sprintf("gate %d of %s is answered: %s", g.Number, t.Name, f.Answer)
	if answered.AnsweredAt == nil {
		what = fmt.Sprintf("gate %d of %s is answered for one task: %s; it stays open for the others", g.Number, t.Name,
			f.Answer)
	}
	if f.Answer != perdure.AnswerAbandon {
		what += "; where nobody runs it, `" + t.Resume + "` goes on"
	}
	e.Note("%s", what)
	return nil
}

// read returns what a person wrote.
func read(e *env.Env, name string) (string, error) {
	from := e.Stdin
	if name != "-" {
		f, err := os.Open(e.Path(name))
		if err != nil {
			return "", &perdure.Error{Code: perdure.CodeInvalid, Op: "read answer", Err: err}
		}
		defer f.Close()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, perdure.MaxGateTextBytes+1)) // one more is refused by the store
	if err != nil {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: "read answer", Err: err}
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD"), nil
}

func show(e *env.Env, g *perdure.Gate, t *Target, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(g)
	}
	text, err := Text(e.Out, g, t)
	e.Printf("%s", text)
	return err
}

// Text is what a gate asks, and how it is answered.
func Text(s *env.Stream, g *perdure.Gate, t *Target) (string, error) {
	q, err := g.ParseQuestion()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	title := q.Title
	if g.Waiting > 0 {
		title += " (" + human.Count(int64(g.Waiting), "task") + " waiting)"
	}
	b.WriteString("\n" + s.Bold(s.Safe(title)) + "\n")
	if text := strings.TrimSpace(q.Text); text != "" {
		b.WriteString("\n" + s.Safe(text) + "\n")
	}
	if len(g.Tasks) > 1 {
		b.WriteString("\n")
		for i := range g.Tasks {
			fmt.Fprintf(&b, "  %s\n", g.Tasks[i].Task)
		}
	}
	if q.Diff != "" {
		b.WriteString("\n")
		for line := range strings.Lines(q.Diff) {
			b.WriteString(s.Diff(s.Safe(strings.TrimRight(line, "\r\n"))) + "\n")
		}
	}
	b.WriteString("\n")
	for _, o := range q.Options {
		b.WriteString("  " + t.Command(o.Answer) + "\n      " + s.Safe(o.Effect) + "\n")
	}
	return b.String() + "\n", nil
}

// Prompt asks the person at a terminal for the answer to each gate that comes in,
// until ctx ends. What is typed is "ANSWER" or "ANSWER reason", for a run "manual
// RESULT" or "manual TASK RESULT"; other words are asked for again.
func Prompt(ctx context.Context, e *env.Env, b *env.Backend, open <-chan perdure.Gate) {
	lines := bufio.NewScanner(e.Stdin)
	for {
		var g perdure.Gate
		select {
		case <-ctx.Done():
			return
		case g = <-open:
		}
		fmt.Fprint(e.Err, "answer: ")
		for lines.Scan() {
			answer, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
			if answer == "" {
				continue
			}
			d := perdure.GateDecision{Answer: answer, By: env.User(), Reason: strings.TrimSpace(rest)}
			if g.Run && answer == perdure.AnswerManual {
				d.Text, d.Reason = d.Reason, ""
				word, text, _ := strings.Cut(d.Text, " ")
				if id, err := perdure.ParseTaskID(word); err == nil {
					d.Task, d.Text = id, strings.TrimSpace(text)
				}
			}
			_, err := b.AnswerGate(ctx, g.Tree, g.Number, d)
			if err == nil || errors.Is(err, perdure.ErrConflict) || ctx.Err() != nil {
				break
			}
			fmt.Fprintf(e.Err, "%s\nanswer: ", cmp.Or(perdure.HintOf(err), err.Error()))
		}
	}
}
