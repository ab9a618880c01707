package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/lookup"
	"github.com/perdure/perdure/rlm/internal/repl/record"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// replPlan, in the plan of a task, is how its REPL works.
type replPlan struct {
	// Profile is the version of the profile, Engine the name of the engine.
	Profile string `json:"profile"`
	Engine  string `json:"engine"`
	// Turns is the most replies in which code is run.
	Turns int `json:"turns"`
	// SubCallBytes is the longest prompt that the instructions recommend for a sub-call.
	SubCallBytes int64 `json:"sub_call_bytes"`
	// Fits is set if the conversation is shortened before it is longer than the window of the model.
	// In trees of versions before, it is shortened only after the model has refused it.
	Fits bool `json:"fits,omitempty"`
}

// conversation is what the model of a REPL was shown and has replied.
type conversation struct {
	profile turn.Profile
	facts   turn.Facts
	system  string
	first   string
	// messages are those after the first; number counts the replies.
	messages []model.Message
	number   int
	// outputs are the messages behind the replies as they are shortened, and shown is how the
	// conversation is shown.
	outputs []output
	shown   shown
	// asked is the turn behind which the question of now was asked, and question that question, if it is a
	// further one.
	asked    int
	question string
	// blocks is the code of the last reply, and outcomes what it did so far.
	blocks   []string
	outcomes []turn.Outcome
	// closing is set if the last block is FINAL_VAR in the text behind the code of the reply, and remarks
	// say what of the reply was not run or does not count.
	closing bool
	remarks []string
	// cut is set if the reply after the last turn ends at the limit for answers.
	cut bool
	// final is the first final answer of the turn.
	final *engine.Final
}

// repl answers the task by a REPL: the model writes code over the context, which is run, until
// the code sets a final answer. Every reply is a call of the journal, every sub-call of the
// code a task, every block a record: an interrupted REPL repeats its code with what is
// recorded, and goes on behind it.
func (a *attempt) repl(ctx context.Context) error {
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return a.endLate(ctx, over)
	}
	c, err := a.takeConsole(timed)
	if err != nil {
		return a.endLate(ctx, a.interrupted(timed, err))
	}
	parked, err := a.converse(timed, c)
	if parked {
		return nil
	}
	if closing := c.close(); err == nil && closing != nil {
		a.e.cfg.Logger.Warn("close engine of REPL", "task_id", a.l.Task.ID.String(), "error", closing)
	}
	if errors.Is(err, errStopping) {
		return a.release(ctx)
	}
	if lost, failed := a.lose(timed, c, err); lost || failed != nil {
		return a.interrupted(timed, failed)
	}
	return a.endEarly(ctx, c, a.interrupted(timed, a.engineFailure(err)))
}

// converse runs turns until there is an answer. parked reports that the task waits for
// sub-calls, or is queued because the worker is stopping, and that its lease has ended.
func (a *attempt) converse(ctx context.Context, c *console) (parked bool, err error) {
	for {
		for len(c.outcomes) < len(c.blocks) {
			index := len(c.outcomes)
			r, err := a.runBlock(ctx, c, c.number, index, c.blocks[index])
			if err != nil || r == nil {
				return err == nil, err
			}
			c.ran(r)
		}
		if f := a.furthers(); f != nil && c.number <= f.At {
			c.final = nil // that of an earlier question
		}
		if c.final != nil {
			return false, a.finish(ctx, c, c.final)
		}
		a.endTurn(c)
		if a.e.stopping() != nil {
			err := a.leave(c, func() error { return a.l.Release(ctx) })
			return err == nil, err
		}
		if c.number == a.node.Repl.Turns || c.isIdle() {
			return false, a.lastAnswer(ctx, c)
		}
		if err := a.nextReply(ctx, c); err != nil {
			return false, err
		}
	}
}

// nextReply asks the model for its next reply.
func (a *attempt) nextReply(ctx context.Context, c *console) error {
	text, known, err := a.takenOver(ctx, c)
	if err == nil && !known {
		text, err = a.askTurn(ctx, c)
	}
	if err != nil {
		return err
	}
	c.number++
	c.messages = append(c.messages, model.Message{Reply: true, Text: text})
	c.takeReply(text)
	return nil
}

// takeReply takes the code and the final answer of a reply.
func (c *console) takeReply(text string) {
	r := c.profile.Parse(text)
	c.blocks, c.outcomes, c.closing, c.remarks = nil, nil, false, r.Notes
	for _, b := range r.Blocks {
		c.blocks = append(c.blocks, b.Code)
		c.closing = b.Closing
	}
	switch f := r.Final; {
	case f == nil:
	case f.Variable:
		c.blocks = []string{finalVar(f)}
	case f.Name && c.vars[f.Text].Name != "":
		c.blocks = []string{finalVar(f)}
		c.notes = append(c.notes, fmt.Sprintf("the reply FINAL(%s) was read as FINAL_VAR: there is such a variable", f.Text))
	case c.profile.KeepsNames() && f.MissingName(c.replies()) != "":
		c.remarks = append(c.remarks, f.MissingName(c.replies()))
	default:
		c.final = &engine.Final{Text: f.Text, By: "FINAL"}
	}
}

// finalVar is the code that makes a variable the answer.
func finalVar(f *turn.Final) string { return "FINAL_VAR(" + f.Text + ")\n" }

// turnRequest is the request for the next reply.
func (a *attempt) turnRequest(c *console) *model.Request {
	return &model.Request{System: c.system, Prompt: c.first, Messages: c.messagesShown(),
		Shared: c.profile.Shared(&c.facts, c.first), Temperature: a.temperature(), Seed: a.run.cfg.Seed,
		MaxOutputTokens: a.answerLimit()}
}

// ran notes what a block did. Its final answer counts if it ran to its end.
func (c *console) ran(r *record.Result) {
	o := turn.Outcome{Code: c.blocks[len(c.outcomes)], Output: r.Output, OutputBytes: r.OutputBytes}
	c.changed = c.changed || len(r.Vars) > 0 || len(r.Gone) > 0
	if f := r.Failure; f != nil {
		o.Failure = strings.TrimRight(f.Traceback, "\n")
		if o.Failure == "" {
			o.Failure = f.Type + ": " + f.Message
		}
		for _, v := range r.Vars {
			o.Bound = append(o.Bound, v.Name)
		}
		o.Calls = c.delivered
	} else if c.final == nil && r.Final != nil {
		if o.Note = c.refuses(r.Final); o.Note == "" {
			c.final = r.Final
		}
	}
	c.outcomes = append(c.outcomes, o)
}

// refuses returns why the final answer of the block that ran does not count, empty if it does.
func (c *console) refuses(f *engine.Final) string {
	failed := slices.ContainsFunc(c.outcomes, func(o turn.Outcome) bool { return o.Failure != "" })
	switch {
	case !c.profile.KeepsNames():
	case strings.TrimSpace(f.Text) == "", string(f.Value) == "null":
		return "The final answer is empty, so it does not count: set it to the answer first."
	case c.closing && len(c.outcomes) == len(c.blocks)-1 && failed:
		return "FINAL_VAR in the text does not count, because the code before it ended with an exception."
	}
	return ""
}

// endTurn adds the message about what the reply's code did. Before the first reply there is
// none.
func (a *attempt) endTurn(c *console) {
	if c.number == 0 {
		return
	}
	names := make([]string, 0, len(c.vars))
	for name := range c.vars {
		names = append(names, name)
	}
	slices.Sort(names)
	facts := c.facts
	after, turns := a.turnsOf(c.number)
	facts.Turns = turns
	number, q := c.number-after, turn.Further{}
	q, further := a.questionAfter(c.number)
	if c.idle++; further || number <= 0 || len(c.outcomes) > 0 && !c.repeats() {
		c.idle = 0
	}
	c.changed = false
	if c.isIdle() {
		facts.Turns = number
	}
	if further {
		c.asked, c.question = c.number, q.Question
	}
	write := func(d turn.Done) string {
		if further {
			return c.profile.Further(&q, d)
		}
		return c.profile.After(&facts, number, d)
	}
	o := output{turn.Done{Outcomes: c.outcomes, Notes: c.remarks, Vars: names}, write}
	c.outputs = append(c.outputs, o)
	c.messages = append(c.messages, model.Message{Text: write(o.done)})
	c.blocks, c.outcomes = nil, nil
}

// replies yields the replies of the model so far.
func (c *console) replies() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range c.messages {
			if c.messages[i].Reply && !yield(c.messages[i].Text) {
				return
			}
		}
	}
}

// repeats reports whether the turn did the same as the one before: the same code, with the same
// output, and no variable changed. Code without any output can have gone on unseen.
func (c *console) repeats() bool {
	if len(c.outputs) == 0 || c.changed {
		return false
	}
	same := func(a, b turn.Outcome) bool {
		return a.Code == b.Code && a.Output == b.Output && a.OutputBytes == b.OutputBytes && a.Failure == b.Failure &&
			(a.OutputBytes > 0 || a.Failure != "")
	}
	return slices.EqualFunc(c.outputs[len(c.outputs)-1].done.Outcomes, c.outcomes, same)
}

// isIdle reports whether so many replies in a row had no new code that further ones hardly have any.
func (c *console) isIdle() bool {
	const most = 5
	return c.profile.KeepsNames() && c.idle >= most
}

// lastAnswer asks for an answer without code after the last turn.
func (a *attempt) lastAnswer(ctx context.Context, c *console) error {
	text, err := a.askTurn(ctx, c)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("the answer was asked for after %s, in which no code had set one (see --repl-turns)",
		human.Count(c.number, "turn"))
	if c.isIdle() {
		note = fmt.Sprintf("the answer was asked for after %d replies in a row without new code", c.idle)
	}
	c.notes = append(c.notes, note)
	if c.cut, err = a.wasCut(ctx, c.number); err != nil {
		return err
	}
	r := c.profile.Parse(text)
	f := &engine.Final{Text: strings.TrimSpace(text), By: "the last reply"}
	if c.profile.KeepsNames() {
		return a.finishLast(ctx, c, f, &r)
	}
	if r.Final != nil && !r.Final.Variable {
		f.Text = r.Final.Text
	}
	return a.finish(ctx, c, f)
}

// wasCut reports whether the reply of this number ends at the limit for answers.
func (a *attempt) wasCut(ctx context.Context, number int) (cut bool, err error) {
	calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
	for i := range calls {
		if c := &calls[i]; c.Position == number && c.State == perdure.CallCompleted {
			data, _ := termsOf(c)
			cut = data.Cut
		}
	}
	return cut, err
}

// finishLast completes the task with the reply after the last turn. One that is code, or a final answer
// that does not count, is no answer, nor is one of a run in which no code ran: the task is partial then.
func (a *attempt) finishLast(ctx context.Context, c *console, f *engine.Final, r *turn.Reply) error {
	ranCode := func(o output) bool { return len(o.done.Outcomes) > 0 }
	ok := len(r.Blocks) == 0 && len(r.Notes) == 0
	if named := r.Final; named != nil {
		f.Text = named.Text
		v, known := c.vars[named.Text]
		var text string
		switch {
		case (named.Variable || named.Name) && known && json.Unmarshal(v.Value, &text) == nil:
			f.Text, f.Value = text, v.Value
		case (named.Variable || named.Name) && known && v.Value != nil:
			f.Text, f.Value = string(v.Value), v.Value
		case named.Variable, named.MissingName(c.replies()) != "", named.Name && known:
			ok = false
		}
	}
	ran := slices.ContainsFunc(c.outputs, ranCode)
	if ok && ran && f.Text != "" {
		return a.finish(ctx, c, f)
	}
	_, draft, err := a.reached(ctx)
	if err != nil {
		return err
	}
	if ok && !ran {
		draft = f.Text
	}
	data := Data{Incomplete: true, Citations: slices.Clone(c.context.Citations())}
	why := "the reply after the last turn is in no form that counts as an answer"
	switch {
	case len(r.Blocks) > 0:
		why = "the reply after the last turn is code, which is not run any more"
	case ok && !ran:
		why = "no code ran, so that nothing computed the answer"
	}
	data.addNotes(append(c.notes, why))
	if draft == "" {
		draft = "(no answer: the turns ended before the code had set one)"
	}
	return a.complete(ctx, draft, &data)
}

// finish completes the task with a final answer.
func (a *attempt) finish(ctx context.Context, c *console, f *engine.Final) error {
	data := Data{Citations: slices.Clone(c.context.Citations()), Cut: c.cut}
	data.addNotes(c.notes)
	data.noteCut(a, a.run.model(&a.l.Task))
	text := f.Text
	if a.run.shape != nil && f.Value != nil && f.Value[0] != '"' {
		text = string(f.Value)
	}
	text, err := a.form(ctx, text, &data)
	if err != nil {
		return err
	}
	return a.complete(ctx, text, &data)
}

// endEarly completes the task as partial if the budget ended it: with the best answer so far,
// also of turns that the console did not repeat. A resumed run goes on from there.
func (a *attempt) endEarly(ctx context.Context, c *console, err error) error {
	over := outOfBudget(err) || errors.Is(err, perdure.ErrBudgetExceeded) // calls, or tasks
	if !over && !tooLong(err) {
		return err
	}
	number, draft, readErr := a.reached(ctx)
	if readErr != nil {
		return readErr
	}
	if number == 0 || !over && a.l.Task.Parent != 0 { // for the code of a parent, it is an error
		return err
	}
	data := Data{Incomplete: true, TooLong: tooLong(err), Citations: slices.Clone(c.context.Citations())}
	data.addNotes(append(c.notes, fmt.Sprintf("the REPL ended in turn %d, before an answer was final: %v", number, err)))
	switch {
	case draft == "" && data.TooLong:
		draft = "(no answer: the conversation became longer than the model reads before the code had set one)" +
			c.lastOutput()
	case draft == "":
		draft = fmt.Sprintf("(no answer: %s before the code had set one)", whatEnded(err))
	}
	return a.complete(ctx, draft, &data)
}

// reached returns the last turn that has a reply, 0 if none has, and the best answer before there
// is one, from the records.
func (a *attempt) reached(ctx context.Context) (turn int, draft string, err error) {
	calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
	if err != nil {
		return 0, "", err
	}
	for _, c := range replies(calls) {
		turn = max(turn, c.Position+1)
	}
	blocks, err := a.e.blocks.Heads(ctx, a.l.Tree.ID, a.l.Task.ID)
	for i := range blocks {
		if r := blocks[i].Result; r != nil && r.Draft != "" {
			draft = r.Draft
		}
	}
	return turn, draft, err
}

// endLate is endEarly for a task whose time was over before it could go on.
func (a *attempt) endLate(ctx context.Context, over error) error {
	c := a.e.consoles.take(a.l)
	if c == nil {
		c = &console{context: &lookup.Context{}}
	}
	if err := c.close(); err != nil {
		a.e.cfg.Logger.Warn("close engine of REPL", "task_id", a.l.Task.ID.String(), "error", err)
	}
	return a.endEarly(ctx, c, over)
}

// engineFailure says how an attempt ends whose engine failed.
func (a *attempt) engineFailure(err error) error {
	e, ok := isEngine(err)
	if !ok {
		return err
	}
	msg := e.Error()
	if e.Hint != "" {
		msg += " (" + e.Hint + ")"
	}
	retry := e.Kind == engine.KindKilled
	return &attemptError{kind: KindEngine, retry: retry, err: errors.New(msg)}
}

// tool carries out a function that reads the context.
func (a *attempt) tool(ctx context.Context, c *console, r *engine.Request) (reply engine.Reply, err error) {
	reply.Value, err = c.context.Call(ctx, r.Function, r.Args)
	if p, ok := errors.AsType[*lookup.Problem](err); ok {
		return engine.Reply{Err: p.Text}, nil
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		err = damaged(err)
	}
	return reply, err
}
