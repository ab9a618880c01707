// Package gate implements the command answer. The commands that follow a run or a loop
// also show gates and ask for answers through this package.
package gate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/loop"
)

// Target is the run or the loop of a gate.
type Target struct {
	Tree perdure.TreeID
	// Name is its name in messages, Command returns the command of an answer, Resume is
	// the command that continues it if no process runs it.
	Name    string
	Command func(answer string) string
	Resume  string
	// Note is shown with the question and is not part of the store.
	Note string
}

// Run returns a run as the target.
func Run(id perdure.TreeID) *Target {
	return &Target{Tree: id, Name: string(id), Resume: "perdure resume " + string(id),
		Command: func(answer string) string { return "perdure answer " + string(id) + " " + answer }}
}

// Loop returns the loop of a name as the target.
func Loop(id perdure.TreeID, name string) *Target {
	return &Target{Tree: id, Name: name, Resume: "perdure loop resume " + name,
		Command: func(answer string) string { return "perdure loop answer " + answer + " --loop " + name }}
}

// of returns the run or the loop of a tree as the target.
func of(ctx context.Context, b *env.Backend, id perdure.TreeID) (*Target, error) {
	tree, err := b.Tree(ctx, id)
	if err == nil && tree.Kind == perdure.KindLoop {
		return Loop(id, loop.ID(&tree)), nil
	}
	return Run(id), err
}

// Flags are the flags of an answer.
type Flags struct {
	// Answer is the answer; "" shows the gate.
	Answer string

	gate                            int
	task, text, file, reason, token string
}

// tokenVariable is the environment variable with the token of a gate.
const tokenVariable = "PERDURE_GATE_TOKEN"

// Register adds the flags that runs and loops share.
func (f *Flags) Register(e *env.Env, cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.gate, "gate", 0, "`N` number of the gate; default: the open one")
	cmd.Flags().StringVar(&f.reason, "reason", "", "`TEXT` reason, kept with the answer")
	cmd.Flags().StringVar(&f.token, "token", "", "`TOKEN` token of a loop's gate, needed without a terminal; - reads it "+
		"from standard input, which ps does not show; default: $"+tokenVariable)
	e.JSONFlag(cmd)
}

// Command returns the command answer.
func Command(e *env.Env) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "answer [TREE] [ANSWER]",
		Short: "Answer the gate that a run or a loop waits at",
		Long: "Answer the gate that a run or a loop waits at. A run opens a gate when no model answers a task; further " +
			"such tasks wait at the same gate. Answers are retry (ask the models again), manual (use --text or --file as " +
			"the result of a task), skip (the tasks fail) and abandon (the tree ends). Without an answer, show the gate; " +
			"without a tree, list the open gates.",
		Example: "perdure answer\n perdure answer tree-1a2b3c4d retry\n" +
			" perdure answer tree-1a2b3c4d manual --task task-0007 --file answer.txt",
		GroupID: env.GroupRun,
		Args:    env.Arguments(0, 2, "a tree and an answer"),
		RunE: e.Run(env.Read, func(ctx context.Context, b *env.Backend, args []string) error {
			id, answer, err := which(ctx, e, b, args)
			f.Answer = answer
			if err != nil || id == "" {
				return err
			}
			t, err := of(ctx, b, id)
			if err != nil {
				return err
			}
			return Answer(ctx, e, b, t, &f)
		}),
	}
	f.Register(e, cmd)
	cmd.Flags().StringVar(&f.task, "task", "", "`TASK` task to answer, if several wait")
	cmd.Flags().StringVar(&f.text, "text", "", "`TEXT` result of the task, for manual")
	cmd.Flags().StringVar(&f.file, "file", "", "`FILE` file with the result of the task, for manual; - is standard input")
	cmd.MarkFlagsMutuallyExclusive("text", "file")
	return cmd
}

// which returns the tree and the answer: the given tree, or else the only one with an open
// gate. If there are several, it lists them and returns no tree.
func which(ctx context.Context, e *env.Env, b *env.Backend, args []string) (id perdure.TreeID, answer string,
	err error) {
	if len(args) > 0 {
		if env.CheckTree(args[0]) == nil || len(args) == 2 {
			id, err = b.FindTree(ctx, args[0])
			return id, strings.Join(args[1:], ""), err
		}
		answer = args[0]
	}
	open, err := b.OpenGates(ctx)
	switch {
	case err != nil:
		return "", "", err
	case len(open) == 0:
		return "", "", env.NotFound("", "no open gate")
	case len(open) == 1:
		return open[0].Tree, answer, nil
	case answer != "":
		return "", "", env.UsageError("add a tree; `perdure answer` lists the open gates", "%d gates are open", len(open))
	}
	for i := range open {
		e.Printf("%s  %s\n", open[i].Tree, e.Out.Safe(line(&open[i])))
	}
	return "", "", nil
}

// line returns a gate as one line.
func line(g *perdure.Gate) string {
	title := string(g.Kind)
	if q, err := g.ParseQuestion(); err == nil {
		title = q.Title
	}
	return fmt.Sprintf("gate %d: %s%s", g.Number, title, waiting(g))
}

// waiting returns the number of tasks that wait at a gate, if any do.
func waiting(g *perdure.Gate) string {
	if g.Waiting == 0 {
		return ""
	}
	return " (" + human.Count(g.Waiting, "task") + " waiting)"
}

// Find returns the open gate of a number; 0 is the first open one.
func Find(gates []perdure.Gate, number int) (*perdure.Gate, bool) {
	at := slices.IndexFunc(gates,
		func(g perdure.Gate) bool { return g.AnsweredAt == nil && (number == 0 || g.Number == number) })
	if at < 0 {
		return nil, false
	}
	return &gates[at], true
}

// Answer answers the gate of a target, or shows it if f has no answer.
func Answer(ctx context.Context, e *env.Env, b *env.Backend, t *Target, f *Flags) error {
	gates, err := b.Gates(ctx, t.Tree)
	if err != nil {
		return err
	}
	g, ok := Find(gates, f.gate)
	if !ok {
		if _, err := b.Tree(ctx, t.Tree); err != nil {
			return err
		}
		return notOpen(gates, f.gate, t)
	}
	if f.Answer == "" {
		return show(e, g, t)
	}
	d := perdure.GateDecision{Answer: f.Answer, By: env.User(), Reason: f.reason, Text: f.text}
	if f.task != "" {
		id, err := perdure.ParseTaskID(f.task)
		if err != nil {
			return err
		}
		if d.Task, err = b.FindTask(ctx, id); err != nil {
			return err
		}
	}
	if f.file != "" {
		if d.Text, err = read(e, f.file); err != nil {
			return err
		}
	}
	if d.Token, err = f.readToken(e); err != nil {
		return err
	}
	answered, err := b.AnswerGate(ctx, t.Tree, g.Number, d)
	if err != nil {
		return err
	}
	return e.Print(&answered, func() {
		done := fmt.Sprintf("answered gate %d of %s: %s", g.Number, t.Name, f.Answer)
		if answered.AnsweredAt == nil {
			done = fmt.Sprintf("answered gate %d of %s for one task: %s; it stays open for the others", g.Number, t.Name,
				f.Answer)
		}
		if f.Answer != perdure.AnswerAbandon && f.Answer != "abort" { // those end it
			done += "; if no process runs it, `" + t.Resume + "` continues"
		}
		e.Note("%s", done)
	})
}

// notOpen returns the error that a target has no open gate, or not that one.
func notOpen(gates []perdure.Gate, number int, t *Target) error {
	if number == 0 {
		return env.NotFound("", "%s: no open gate", t.Name)
	}
	hint := ""
	if open, ok := Find(gates, 0); ok {
		hint = fmt.Sprintf("gate %d is open", open.Number)
	}
	for i := range gates {
		if g := &gates[i]; g.Number == number {
			return env.NotFound(hint, "%s: gate %d is answered: %s", t.Name, number, cmp.Or(g.Answer, "without an answer"))
		}
	}
	return env.NotFound(hint, "%s: there is no gate %d", t.Name, number)
}

// readToken returns the token of the flag, of standard input or of the environment.
func (f *Flags) readToken(e *env.Env) (string, error) {
	switch {
	case f.token != "-":
		return cmp.Or(f.token, e.Getenv(tokenVariable)), nil
	case f.file == "-":
		return "", env.UsageError("", "--file and --token both read standard input")
	}
	lines := bufio.NewScanner(e.Stdin)
	lines.Scan()
	if err := lines.Err(); err != nil {
		return "", env.UsageError("", "read token: %s", err)
	}
	return lines.Text(), nil
}

// read returns the text of a file or of standard input.
func read(e *env.Env, name string) (string, error) {
	from, err := e.OpenFile(name)
	if err != nil {
		return "", env.UsageError("", "read answer: %s", err)
	}
	defer from.Close()
	raw, err := io.ReadAll(io.LimitReader(from, perdure.MaxGateTextBytes+1)) // one more byte is an error
	if err != nil {
		return "", env.UsageError("", "read answer: %s", err)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD"), nil
}

func show(e *env.Env, g *perdure.Gate, t *Target) error {
	text, err := Text(e.Out, g, t, "")
	if err != nil && !e.JSON {
		return err
	}
	return e.Print(g, func() { e.Printf("%s", text) })
}

// Text returns the question of a gate with its answers, who can answer, and the token if it is
// not empty.
func Text(s *env.Stream, g *perdure.Gate, t *Target, token string) (string, error) {
	q, err := g.ParseQuestion()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n" + s.Wrap(s.Bold(s.Safe(q.Title+waiting(g)))) + "\n")
	if text := strings.TrimSpace(q.Text); text != "" {
		b.WriteString("\n" + s.Wrap(s.Safe(text)) + "\n")
	}
	if t.Note != "" {
		b.WriteString("\n" + s.Safe(t.Note) + "\n")
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
			b.WriteString(s.Wrap(s.Diff(s.Safe(strings.TrimRight(line, "\r\n")))) + "\n")
		}
	}
	b.WriteString("\n")
	flag := ""
	if g.Approver == perdure.ApproverToken {
		flag = status.TokenFlag
	}
	for _, o := range q.Options {
		b.WriteString("  " + t.Command(o.Answer) + flag + "\n" + s.Wrap("      "+s.Safe(o.Effect)) + "\n")
	}
	for _, line := range []string{status.Approver(g.Approver), Token(token)} {
		if line != "" {
			b.WriteString("\n" + s.Wrap(line) + "\n")
		}
	}
	return b.String() + "\n", nil
}

// Token returns the line that shows a token, "" for none.
func Token(token string) string {
	if token == "" {
		return ""
	}
	return "token: " + token
}

// Ask returns a channel for gates whose answers the user types at the terminal until ctx
// ends, or nil without a terminal.
func Ask(ctx context.Context, e *env.Env, b *env.Backend) chan<- perdure.Gate {
	if !e.CanAsk() {
		return nil
	}
	open := make(chan perdure.Gate, 1)
	go prompt(ctx, e, b, open)
	return open
}

// prompt asks the user at the terminal for the answers to the gates from open, until ctx
// ends. Answers are "ANSWER" or "ANSWER reason", for a run also "manual RESULT" or "manual
// TASK RESULT". It repeats the question after a refused answer.
func prompt(ctx context.Context, e *env.Env, b *env.Backend, open <-chan perdure.Gate) {
	lines := bufio.NewScanner(e.Stdin)
	for {
		var g perdure.Gate
		select {
		case <-ctx.Done():
			return
		case g = <-open:
		}
		if g.Approver == perdure.ApproverUser {
			continue // this terminal belongs to the user who runs the loop
		}
		fmt.Fprint(e.Err, summary(e.Err, &g)+"answer: ")
		for lines.Scan() {
			answer, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
			if answer == "" {
				continue
			}
			d := decision(&g, answer, strings.TrimSpace(rest))
			if g.Approver == perdure.ApproverToken {
				fmt.Fprint(e.Err, "token: ")
				lines.Scan()
				d.Token = lines.Text()
			}
			_, err := b.AnswerGate(ctx, g.Tree, g.Number, d)
			if err == nil || ctx.Err() != nil || errors.Is(err, perdure.ErrConflict) && answered(ctx, b, &g) {
				break
			}
			fmt.Fprintf(e.Err, "%s\nanswer: ", cmp.Or(perdure.HintOf(err), err.Error()))
		}
	}
}

// findings recognizes the lines of a question that name a finding, with its severity.
var findings = lazyregexp.New(`(?m)^- \w+ \((critical|high|medium|low)\): .*$`)

// maxRepeated is how many findings are repeated above the prompt.
const maxRepeated = 3

// summary repeats the title of a gate and its findings: on a small terminal the question itself has
// scrolled away when the user is asked.
func summary(s *env.Stream, g *perdure.Gate) string {
	q, err := g.ParseQuestion()
	if err != nil {
		return ""
	}
	text := s.Wrap(s.Bold(s.Safe(q.Title+waiting(g)))) + "\n"
	for _, line := range findings().FindAllString(q.Text, maxRepeated) {
		text += s.Wrap(s.Safe(line)) + "\n"
	}
	return text
}

// decision returns what the user typed as the answer to a gate.
func decision(g *perdure.Gate, answer, rest string) perdure.GateDecision {
	d := perdure.GateDecision{Answer: answer, By: env.User(), Reason: rest}
	if g.Run && answer == perdure.AnswerManual {
		d.Text, d.Reason = d.Reason, ""
		word, text, _ := strings.Cut(d.Text, " ")
		if id, err := perdure.ParseTaskID(word); err == nil {
			d.Task, d.Text = id, strings.TrimSpace(text)
		}
	}
	return d
}

// answered reports whether a gate is not open any more, or cannot be read.
func answered(ctx context.Context, b *env.Backend, g *perdure.Gate) bool {
	gates, err := b.Gates(ctx, g.Tree)
	if err != nil {
		return true
	}
	_, open := Find(gates, g.Number)
	return !open || g.Run // the gate of a run refuses only when its tree has ended
}
