package acp

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/status"
)

// target is the run or the loop of a gate.
type target struct {
	name    string
	command func(answer string) string
}

func runTarget(id perdure.TreeID) target {
	return target{string(id), func(answer string) string { return fmt.Sprintf("perdure answer %s %s", id, answer) }}
}

func loopTarget(id string) target {
	return target{id, func(answer string) string { return fmt.Sprintf("perdure loop answer %s --loop %s", answer, id) }}
}

// asker asks the user about the gates of a tree. A question runs next to the view of the tree, and is
// withdrawn when the gate is answered elsewhere.
type asker struct {
	t    *turn
	p    *Project
	tree perdure.TreeID
	of   target
	work sync.WaitGroup // of all questions
	// asked are the functions that withdraw questions, by gate; nil for one that cannot be asked.
	asked map[int]context.CancelFunc
	// leave shows gates without asking, and found is set at the first one.
	leave, found bool
}

func newAsker(t *turn, p *Project, id perdure.TreeID, of target) *asker {
	return &asker{t: t, p: p, tree: id, of: of, asked: make(map[int]context.CancelFunc)}
}

// close withdraws all questions and waits for their end.
func (a *asker) close() {
	for n := range a.asked {
		a.answered(n)
	}
	a.work.Wait()
}

// answered withdraws the question about a gate.
func (a *asker) answered(number int) {
	if stop := a.asked[number]; stop != nil {
		stop()
	}
}

// consider asks about the open gate of a number, unless it was asked before; 0 is the first open
// one.
func (a *asker) consider(ctx context.Context, number int) error {
	gates, err := a.p.Gates(ctx, a.tree)
	if err != nil {
		return err
	}
	for i := range gates {
		if g := &gates[i]; g.AnsweredAt == nil && (number == 0 || g.Number == number) {
			return a.question(ctx, g)
		}
	}
	return nil
}

// question asks about a gate in the editor, or shows how to answer it elsewhere.
func (a *asker) question(ctx context.Context, g *perdure.Gate) error {
	q, err := g.ParseQuestion()
	if err != nil {
		return err
	}
	a.found = true
	if _, asked := a.asked[g.Number]; asked {
		return nil
	}
	token := ""
	if a.p.Tokens != nil && g.Approver == perdure.ApproverTerminal && a.t.s.own(g.Tree) {
		token = a.p.Tokens.GateToken(ctx, g.Tree, g.Number)
		if token == "" && !a.leave {
			return nil // this process makes one when it executes the loop, which is an event
		}
	}
	if a.leave || !answerable(g, token) {
		a.asked[g.Number] = nil
		a.show(g, &q)
		return nil
	}
	asking, stop := context.WithCancel(ctx)
	a.asked[g.Number] = stop
	a.work.Go(func() {
		defer stop()
		a.ask(ctx, asking, g, &q, token)
	})
	return nil
}

// answerable reports whether the user can answer a gate in the editor: it takes any caller, or this
// process has created the loop and has the token. Gates whose approver is token or user ask for more
// than the editor's user.
func answerable(g *perdure.Gate, token string) bool {
	return g.Run || g.Approver == "" || g.Approver == perdure.ApproverAny || token != ""
}

// ask asks until an answer is accepted or the question is withdrawn.
func (a *asker) ask(ctx, asking context.Context, g *perdure.Gate, q *perdure.GateQuestion, token string) {
	id := fmt.Sprintf("%s/gate-%d", g.Tree, g.Number)
	answer, err := a.t.ask(asking, &question{ID: id, Title: q.Title, Text: markdown(q), Options: options(q)})
	if asking.Err() != nil {
		return
	}
	if err != nil || answer == "" {
		a.show(g, q)
		return
	}
	_, err = a.p.AnswerGate(ctx, g.Tree, g.Number, perdure.GateDecision{Answer: answer, By: a.t.s.cfg.User, Token: token})
	if err != nil && ctx.Err() == nil {
		a.t.say("The answer was refused: %s", message(err))
		a.show(g, q)
	}
}

// show shows a gate with the commands that answer it.
func (a *asker) show(g *perdure.Gate, q *perdure.GateQuestion) {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n%s\n\nAnswer it in a terminal:\n\n", q.Title, markdown(q))
	flag := ""
	if g.Approver == perdure.ApproverToken {
		flag = status.TokenFlag
	}
	for _, o := range q.Options {
		fmt.Fprintf(&b, "- `%s%s`: %s\n", a.of.command(o.Answer), flag, o.Effect)
	}
	if line := status.Approver(g.Approver); line != "" {
		b.WriteString("\n" + line)
	}
	a.t.say("%s", b.String())
}

// markdown returns the details of a question.
func markdown(q *perdure.GateQuestion) string {
	text := strings.TrimSpace(q.Text)
	if q.Diff != "" {
		fence := "```"
		for strings.Contains(q.Diff, fence) {
			fence += "`"
		}
		text += "\n\n" + fence + "diff\n" + strings.TrimRight(q.Diff, "\n") + "\n" + fence
	}
	return strings.TrimSpace(text)
}

// options returns the answers that need no further text.
func options(q *perdure.GateQuestion) []option {
	var list []option
	for _, o := range q.Options {
		if o.Answer == perdure.AnswerManual {
			continue
		}
		kind := "allow_once"
		switch o.Answer {
		case "reject", "abort", perdure.AnswerSkip, perdure.AnswerAbandon:
			kind = "reject_once"
		}
		list = append(list, option{ID: o.Answer, Name: o.Answer + ": " + o.Effect, Kind: kind})
	}
	return list
}
