package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
)

const (
	// maxRepairs is how often a model may correct its reply.
	maxRepairs = 2
	// minRepairBytes is the least room for a reply that is shown again together
	// with its faults.
	minRepairBytes = 600
	// formPosition is where the calls begin that form a structured result of
	// merged ones: behind all that a merge may make.
	formPosition = 16 * reducePosition
)

// question is a request whose reply is checked.
type question struct {
	m   *asked
	req *model.Request
	// position is that of the first call; each repair takes the next.
	position int
	// check returns what is wrong with a reply, one sentence each.
	check func(reply string) (problems []string)
	// what is asked for, in the words of an error: "a plan".
	what string
}

// unusableError is returned if a model did not reply in the form that was asked for,
// not even after corrections.
type unusableError struct {
	what     string
	model    string
	problems []string
}

func (e *unusableError) Error() string {
	return fmt.Sprintf("ask %q for %s: the reply is not usable, also after %d corrections: %s",
		e.model, e.what, maxRepairs, strings.Join(e.problems, "; "))
}

// exchange asks, and has the model correct its reply at most maxRepairs times.
// Each request is a call of the journal. calls is how many there were; data
// is of the last one, also with an *unusableError.
func (a *attempt) exchange(ctx context.Context, q *question) (data Data, calls int, err error) {
	req := *q.req
	for {
		var reply string
		reply, data, err = a.ask(ctx, q.position+calls, q.m, &req)
		calls++
		if err != nil {
			return Data{}, calls, err
		}
		problems := q.check(reply)
		if len(problems) == 0 {
			return data, calls, nil
		}
		if calls > maxRepairs {
			return data, calls, &unusableError{what: q.what, model: q.m.name, problems: problems}
		}
		req = *q.req
		req.Prompt += jsonreply.Repair(reply, problems, repairBytes(a.run.plan.Answer))
	}
}

// repairBytes is how long the section with a wrong reply may be when answers
// have this many tokens.
func repairBytes(answerTokens int64) int { return max(minRepairBytes, int(2*answerTokens)) }

// structureBytes is the size limit of a schema in a request, next to the prompt.
func (c *Config) structureBytes(answerTokens int64) int {
	if c.Schema == nil {
		return 0
	}
	const words = 200
	return len(c.Schema) + words + repairBytes(answerTokens)
}

// askWhole asks for the answer of a task. One that has to be structured is
// checked and corrected.
func (a *attempt) askWhole(ctx context.Context, position int, m *asked, req *model.Request) (string, Data, error) {
	s := a.run.shape
	if s == nil || !a.node.Whole || m.ranked {
		return a.askText(ctx, position, m, req)
	}
	return a.askShaped(ctx, &question{m: m, req: req, position: position})
}

// askText asks for a text that is the result of a task, or goes into one.
func (a *attempt) askText(ctx context.Context, position int, m *asked, req *model.Request) (string, Data, error) {
	text, data, err := a.ask(ctx, position, m, req)
	data.noteCut(a, m)
	return text, data, err
}

// askShaped asks for a structured result.
func (a *attempt) askShaped(ctx context.Context, q *question) (string, Data, error) {
	var value json.RawMessage
	s := a.run.shape
	q.what = "a result that is valid against the schema"
	a.run.shaped(q.req)
	q.check = func(reply string) (problems []string) {
		value, problems = s.Check(reply)
		return problems
	}
	data, _, err := a.exchange(ctx, q)
	if unusable, ok := errors.AsType[*unusableError](err); ok { // the replies are in the journal
		err = &attemptError{kind: KindSchema, err: unusable}
	}
	if err != nil {
		return "", Data{}, err
	}
	data.Structured = value
	return string(value), data, nil
}

// shaped makes a request one for a structured result.
func (r *run) shaped(req *model.Request) {
	req.Schema = r.shape.JSON()
	if r.cfg.hasMarkedParts() { // the same system text for all questions, and the question last
		req.Prompt = r.shape.Instruction() + "\n\n" + req.Prompt
		return
	}
	req.System = strings.TrimSpace(req.System + "\n\n" + r.shape.Instruction())
}

// form makes the structured result of a task that was merged, or answered by a
// model that only quotes. A text that is one already is taken as it is; one among the
// answers of several parts is not.
func (a *attempt) form(ctx context.Context, text string, data *Data) (string, error) {
	s := a.run.shape
	if s == nil || !a.node.Whole || data.Structured != nil || len(a.node.Files) > 0 {
		return text, nil // the children of a batch are whole, each by itself
	}
	if value, problems := s.CheckWhole(text); len(problems) == 0 {
		data.Structured = value
		return string(value), nil
	}
	if by := a.run.merger; by != nil && a.l.Task.Parent == 0 && !data.Incomplete {
		_, problems := s.CheckWhole(text)
		return "", failf(KindSchema, "merge the results by %q: what it printed is not valid against the schema: %s",
			by.name, strings.Join(problems, "; "))
	}
	m, req := a.writer(), a.formRequest(text)
	if !a.formable(text) {
		return "", failf(KindSchema, "form a result that is valid against the schema: what was found has about %d tokens "+
			"and "+
			"does not fit the window of %d", model.EstimateTokens(len(text)), a.run.plan.Window)
	}
	timed, stop := a.timed(ctx)
	defer stop()
	formed, from, err := a.askShaped(timed, &question{m: m, req: req, position: formPosition})
	if err != nil {
		return "", a.interrupted(timed, err)
	}
	data.Structured = from.Structured
	data.addNotes(from.Notes)
	return formed, nil
}

// formRequest asks for the structured result of what was found.
func (a *attempt) formRequest(text string) *model.Request {
	return &model.Request{System: a.system(), Temperature: a.temperature(), Seed: a.run.cfg.Seed,
		MaxOutputTokens: a.answerLimit(),
		Prompt: a.prompt() + "\n\n=== what was found ===\n" + text + "\n=== end of what was found ===\n\n" +
			"Answer from what was found alone." + a.addUp()}
}

// addUp asks for totals where what was found are the results of several parts.
func (a *attempt) addUp() string {
	merge := a.l.Task.Merge
	if !a.run.cfg.hasMarkedParts() || a.node.leaf() || merge != MergeUnion && merge != MergeConcatenate {
		return ""
	}
	return " They are the results of parts that do not overlap, one below another: add up their counts and sums."
}

// formable reports whether a text fits the request that forms a structured result
// of it.
func (a *attempt) formable(text string) bool {
	req := a.formRequest(text)
	need := model.EstimateTokens(len(req.System) + len(req.Prompt) + a.run.cfg.structureBytes(a.run.plan.Answer))
	return need+a.run.plan.Answer <= a.run.plan.Window
}

// reduceToForm merges the results of children. Where these are to be formed into
// a structured result and are too long for that, they are summarized.
func (a *attempt) reduceToForm(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	text, data, err := a.reduce(ctx, m, parts)
	plain := m.merge == MergeUnion || m.merge == MergeConcatenate
	if err != nil || !plain || a.run.shape == nil || !a.node.Whole || len(a.node.Files) > 0 || a.formable(text) {
		return text, data, err
	}
	if _, problems := a.run.shape.CheckWhole(text); len(problems) == 0 {
		return text, data, nil
	}
	shorter := *m
	shorter.merge = MergeSummarize
	text, data, err = a.reduce(ctx, &shorter, parts)
	data.addNotes([]string{"the results were summarized: they were too long to form the structured result of them"})
	return text, data, err
}

// writer is the model that writes text for this task: the root's, when the
// task's own only quotes.
func (a *attempt) writer() *asked {
	if m := a.run.model(&a.l.Task); !m.ranked {
		return m
	}
	return a.run.models[0]
}

// structuredFiles is the structured result of a batch: an object with that of
// each file under the file's name. What tasks of a reduction tree made of some
// files is such an object already.
func structuredFiles(parts []part) (json.RawMessage, error) {
	o := new(jsonreply.Object)
	for _, p := range parts {
		var err error
		switch {
		case p.data.Structured == nil:
		case p.file == "":
			err = o.Join(p.data.Structured)
		default:
			err = o.Set(p.file, p.data.Structured)
		}
		if err != nil {
			return nil, err
		}
	}
	return o.Encode(), nil
}

// CheckSchema returns why a text is not a valid [Config.Schema], nil if it is.
// The error is one line.
func CheckSchema(raw []byte) error {
	_, err := jsonreply.Compile(raw)
	return err
}
