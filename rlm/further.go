package rlm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/repl/record"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

const opAsk = "ask a further question"

// Question is an earlier question of a conversation.
type Question struct {
	Prompt string `json:"prompt"`
	// Answer is the beginning of its answer.
	Answer string `json:"answer,omitempty"`
	// After is the turn after which it was asked; 0 for the first one. Turns is how many it had at
	// most.
	After int `json:"after,omitempty"`
	Turns int `json:"turns"`
}

// maxKeptAnswer bounds the beginning of an answer that a further question repeats.
const maxKeptAnswer = 4000

// Further returns the request for the tree of a further question: that with the context, the
// variables and the configuration of the tree that req.Ask names, changed by req.Config, and with
// its conversation if both have a REPL. It fails with CodeNotFound if there is no such tree, and
// with CodeConflict if that tree has not ended. Other requests are returned as they are.
func (e *Executor) Further(ctx context.Context, req LaunchRequest) (LaunchRequest, error) {
	if req.Ask == "" {
		return req, nil
	}
	fail := func(code perdure.Code, hint, format string, args ...any) (LaunchRequest, error) {
		return req, &perdure.Error{Code: code, Op: opAsk, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	tree, err := e.cfg.Store.Tree(ctx, req.Ask)
	if err != nil {
		return req, err
	}
	switch {
	case tree.Kind != KindRun:
		return fail(perdure.CodeInvalid, "name a tree of `perdure run`", "tree %q is a %s, which has no further question",
			tree.ID, tree.Kind)
	case !tree.State.Terminal():
		return fail(perdure.CodeConflict, fmt.Sprintf("`perdure watch %s` follows it; ask when it has ended", tree.ID),
			"tree %q is %s", tree.ID, tree.State)
	case req.ContextID != "":
		return fail(perdure.CodeInvalid, "use `perdure run` for another context", "the context is that of tree %q", tree.ID)
	}
	root, err := e.cfg.Store.Task(ctx, tree.Root)
	if err != nil {
		return req, err
	}
	if req.ContextID = root.Context.Source; req.ContextID != "" {
		_, err := e.cfg.Store.Context(ctx, req.ContextID)
		if perdure.CodeOf(err) == perdure.CodeNotFound {
			return fail(perdure.CodeNotFound, "`perdure run` with --context reads the files again",
				"the context of tree %q was removed", tree.ID)
		} else if err != nil {
			return req, err
		}
	}
	if req.Vars, err = e.copyVars(ctx, &tree); err != nil {
		return req, err
	}
	req.Config, err = e.furtherConfig(ctx, &tree, &root, req.Config)
	return req, err
}

// furtherConfig returns the configuration of a tree with changes, and with its conversation.
func (e *Executor) furtherConfig(ctx context.Context, tree *perdure.Tree, root *perdure.Task,
	changes json.RawMessage) (json.RawMessage, error) {
	merged, err := mergeConfig(tree.Config, changes)
	if err != nil {
		return nil, err
	}
	raw, err := encode("configuration", merged)
	if err != nil {
		return nil, err
	}
	cfg, err := ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	cfg.Ask = tree.ID
	n, err := nodeOf(root)
	if err != nil {
		return nil, err
	}
	if cfg.Planner == PlannerRepl && n.Repl != nil {
		if err := e.continueConversation(ctx, tree, root, n, &cfg); err != nil {
			return nil, err
		}
	}
	return encode("configuration", cfg)
}

// Origin returns from which tree a run with this configuration goes on: "a further question to
// tree-1a2b3c4d", or "turn 3 of tree-1a2b3c4d" for a fork. It is empty for others.
func Origin(config json.RawMessage) string {
	var c struct {
		Ask  perdure.TreeID `json:"ask"`
		Fork *Fork          `json:"fork"`
	}
	_ = json.Unmarshal(config, &c) // what cannot be read names no tree
	switch {
	case c.Ask != "":
		return "a further question to " + string(c.Ask)
	case c.Fork != nil:
		return fmt.Sprintf("turn %d of %s", c.Fork.At, c.Fork.Tree)
	}
	return ""
}

// mergeConfig returns a stored configuration with changes: members replace others, and those of
// tools, named sub-models, parameters and headers are added. What the tree decided by itself is decided again.
func mergeConfig(stored, changes json.RawMessage) (map[string]json.RawMessage, error) {
	var base, given map[string]json.RawMessage
	if err := json.Unmarshal(stored, &base); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(changes) > 0 {
		if err := json.Unmarshal(changes, &given); err != nil {
			return nil, invalid("read configuration: "+err.Error(), "")
		}
	}
	if base["planner_reason"] != nil {
		delete(base, "planner")
	}
	delete(base, "planner_reason")
	delete(base, "fork")
	if _, ok := given["model"]; ok && string(base["sub_model"]) == string(base["model"]) {
		delete(base, "sub_model")
	}
	if planner, ok := given["planner"]; ok && string(planner) != string(base["planner"]) {
		delete(base, "sub_models")
		delete(base, "tools")
	}
	for name, value := range given {
		switch name {
		case "tools", "sub_models", "params", "headers":
			old, more := make(map[string]json.RawMessage), make(map[string]json.RawMessage)
			_ = json.Unmarshal(base[name], &old) // without the member, it stays empty
			if json.Unmarshal(value, &more) == nil {
				maps.Copy(old, more)
				raw, err := encode("configuration", old)
				if err != nil {
					return nil, err
				}
				value = raw
			}
			if name == "sub_models" {
				dropProfiles(base, more)
			}
		}
		base[name] = value
	}
	return base, nil
}

// dropProfiles removes the profiles of sub-models that are named anew.
func dropProfiles(base map[string]json.RawMessage, named map[string]json.RawMessage) {
	var agents, models map[string]json.RawMessage
	if json.Unmarshal(base["agents"], &agents) != nil || json.Unmarshal(base["sub_models"], &models) != nil {
		return
	}
	for name := range named {
		if models[name] != nil {
			delete(agents, name)
		}
	}
	if raw, err := encode("configuration", agents); err == nil {
		base["agents"] = raw
	}
}

// copyVars returns the variables of a tree's own state for another tree.
func (e *Executor) copyVars(ctx context.Context, tree *perdure.Tree) (specs []perdure.VarSpec, err error) {
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: tree.ID, Task: tree.Root}
	list, err := e.cfg.Store.Vars(ctx, ref, perdure.VarFilter{Limit: 1000})
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		if !keptInState(v.Name) {
			continue
		}
		if v.Value == nil {
			if v, err = e.cfg.Store.Var(ctx, ref, v.Name); err != nil {
				return nil, err
			}
		}
		specs = append(specs, perdure.VarSpec{Name: v.Name, Value: v.Value, Type: v.Type, Description: v.Description,
			Cause: perdure.Cause{Source: string(tree.ID), Reason: "copied for a further question"}})
	}
	return specs, nil
}

// continueConversation has a run go on behind the last turn of another one.
func (e *Executor) continueConversation(ctx context.Context, tree *perdure.Tree, root *perdure.Task, n *node,
	cfg *Config) error {
	if cfg.ReplEngine != n.Repl.Engine {
		return invalid(fmt.Sprintf("repl_engine: the code of tree %q is run by %s, and its conversation goes on", tree.ID,
			n.Repl.Engine), "leave out --repl-engine, or start again with `perdure run`")
	}
	cfg.ReplProfile = n.Repl.Profile
	at, err := e.lastTurn(ctx, root, n)
	if err != nil || at == 0 {
		return err
	}
	before, err := ParseConfig(tree.Config)
	if err != nil {
		return err
	}
	f := &Fork{Tree: tree.ID, At: at}
	after := 0
	if before.Fork != nil && before.Ask != "" {
		f.Questions, after = before.Fork.Questions, before.Fork.At
	}
	f.Questions = append(f.Questions, Question{Prompt: root.Prompt, Answer: clip.Bytes(root.Result, maxKeptAnswer),
		After: after, Turns: n.Repl.Turns - after})
	cfg.Fork = f
	return nil
}

// lastTurn returns the last turn of a REPL whose code has run to its end; 0 if there is none.
func (e *Executor) lastTurn(ctx context.Context, root *perdure.Task, n *node) (int, error) {
	calls, err := e.cfg.Store.Calls(ctx, root.ID)
	if err != nil {
		return 0, err
	}
	blocks, err := e.blocks.Heads(ctx, root.Tree, root.ID)
	if err != nil {
		return 0, err
	}
	ended := make(map[int]int)
	for i := range blocks {
		if blocks[i].Result != nil {
			ended[blocks[i].Turn]++
		}
	}
	p, ok := turn.Find(n.Repl.Profile)
	if !ok {
		return 0, nil
	}
	last := 0
	for _, c := range replies(calls) {
		number := c.Position + 1
		code := len(p.Parse(c.Response).Blocks)
		if number > n.Repl.Turns || number != last+1 || ended[number] < code {
			break
		}
		last = number
	}
	return last, nil
}

// furthers returns the conversation that the task goes on with by a further question, nil if it
// has one of its own.
func (a *attempt) furthers() *Fork {
	if f := a.run.cfg.Fork; f != nil && len(f.Questions) > 0 && a.l.Task.Parent == 0 {
		return f
	}
	return nil
}

// questionAfter returns the question that is asked after a turn, with what came before it.
func (a *attempt) questionAfter(number int) (q turn.Further, ok bool) {
	f := a.furthers()
	if f == nil || number == 0 {
		return q, false
	}
	list := append(f.Questions[:len(f.Questions):len(f.Questions)],
		Question{Prompt: a.prompt(), After: f.At, Turns: a.node.Repl.Turns - f.At})
	for i := 1; i < len(list); i++ {
		if list[i].After == number {
			return turn.Further{Question: list[i].Prompt, Answer: list[i-1].Answer, Turns: list[i].Turns}, true
		}
	}
	return q, false
}

// turnsOf returns the turn after which the question of a turn was asked, and how many turns it
// has at most.
func (a *attempt) turnsOf(number int) (after, turns int) {
	after, turns = 0, a.node.Repl.Turns
	f := a.furthers()
	if f == nil {
		return after, turns
	}
	if number >= f.At {
		return f.At, turns - f.At
	}
	for _, q := range f.Questions {
		if q.After <= number {
			after, turns = q.After, q.Turns
		}
	}
	return after, turns
}

// recordFrom gives a block of a turn that is taken over what determined it in the other tree: the
// clock, the random numbers, changed variables, and answers that are recorded nowhere else.
func (a *attempt) recordFrom(b *record.Block) bool {
	f, o := a.furthers(), a.run.origin
	if f == nil || o == nil || b.Turn > f.At {
		return false
	}
	old, ok := o.blocks[[2]int{b.Turn, b.Index}]
	if ok {
		b.Seed, b.StartedAt, b.Edits, b.Told = old.Seed, old.StartedAt, old.Edits, old.Told
	}
	return true
}
