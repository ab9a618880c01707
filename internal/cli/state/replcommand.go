package state

import (
	"context"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// replCommand is a command of the prompt.
type replCommand struct {
	name, args, text string
	run              func(k *console, ctx context.Context, arg string) error
	// writes is set if it changes the state.
	writes bool
}

func replCommands() []replCommand {
	return []replCommand{
		{"vars", "", "list the variables", (*console).listVars, false},
		{"history", "[NAME]", "list changes, the newest first", (*console).listHistory, false},
		{"checkpoint", "NAME", "create a checkpoint", (*console).makeCheckpoint, true},
		{"checkpoints", "", "list the checkpoints", (*console).listCheckpoints, false},
		{"diff", "NAME", "compare with a checkpoint", (*console).diff, false},
		{"rollback", "NAME", "restore the state at a checkpoint, or before a mutation", (*console).rollback, true},
		{"delete", "NAME", "remove a variable", (*console).remove, true},
		{"final", "EXPR", "set Final, which completes the tree or the task", (*console).final, true},
		{"help", "", "print this list", (*console).help, false},
		{"quit", "", "exit, as Ctrl-D does", func(*console, context.Context, string) error { return errQuit }, false},
	}
}

func commandWords() []string {
	var words []string
	for _, one := range replCommands() {
		words = append(words, ":"+one.name)
	}
	return words
}

func (k *console) command(ctx context.Context, name, arg string) error {
	for _, one := range replCommands() {
		if one.name != name {
			continue
		}
		switch {
		case one.args == "" && arg != "":
			return env.UsageError("", ":%s takes no argument", name)
		case one.args != "" && one.args[0] != '[' && arg == "":
			return env.UsageError("", ":%s takes %s", name, one.args)
		case one.writes && k.eval.local != nil:
			return env.UsageError("use `perdure repl --write`", ":%s writes, and this session is read-only", name)
		}
		return one.run(k, ctx, arg)
	}
	return env.Unknown("command", ":"+name, commandWords())
}

func (k *console) help(context.Context, string) error {
	k.Printf("%s\n", "NAME = EXPRESSION sets a variable, EXPRESSION prints a value. The language is Starlark.")
	for _, one := range replCommands() {
		k.Printf("  %s  %s\n", k.Out.Bold(env.Pad(":"+one.name+" "+one.args, nameWidth)), one.text)
	}
	return nil
}

func (k *console) listVars(ctx context.Context, _ string) error {
	for v, err := range k.eval.AllVars(ctx, k.eval.ref) {
		if err != nil {
			return err
		}
		if _, hidden := k.eval.local[v.Name]; !hidden {
			k.Printf("%s\n", k.row(&v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.eval.local)) {
		v := perdure.Variable{Name: name, Value: k.eval.local[name], Type: "this session"}
		v.Size = int64(len(v.Value))
		k.Printf("%s\n", k.row(&v))
	}
	return nil
}

func (k *console) listHistory(ctx context.Context, name string) error {
	page, err := k.eval.History(ctx, k.eval.ref, perdure.HistoryFilter{Name: name, Limit: 20})
	for i := range page.Mutations {
		k.Printf("%s\n", k.mutation(&page.Mutations[i]))
	}
	return err
}

func (k *console) makeCheckpoint(ctx context.Context, name string) error {
	made, err := k.eval.SaveCheckpoint(ctx, k.eval.ref, name, "")
	if err == nil {
		k.Printf("%s\n", made.ID)
	}
	return err
}

func (k *console) listCheckpoints(ctx context.Context, _ string) error {
	list, err := k.eval.Checkpoints(ctx, k.eval.ref)
	for _, one := range list {
		k.Printf("%s  %s  %s\n", one.ID, human.Stamp(one.Time), env.OneLine(one.Name, 60))
	}
	return err
}

func (k *console) diff(ctx context.Context, from string) error {
	changes, err := k.eval.Diff(ctx, k.eval.ref, from, "")
	for i := range changes {
		k.Printf("%s\n", k.change(k.eval.ref, &changes[i]))
	}
	return err
}

func (k *console) rollback(ctx context.Context, to string) error {
	r, err := k.eval.Rollback(ctx, k.eval.ref, to, perdure.Cause{Source: "repl"})
	if err == nil {
		k.Printf("%s restored, %d removed; :rollback %s undoes it\n", human.Count(r.Restored, "variable"), r.Removed,
			r.Mutation)
	}
	return err
}

func (k *console) remove(ctx context.Context, name string) error {
	return k.eval.DeleteVar(ctx, k.eval.ref, name, perdure.Cause{Source: "repl"})
}

// final completes the tree or the task.
func (k *console) final(ctx context.Context, source string) error {
	if k.eval.ref.Scope != perdure.ScopeTree {
		return env.UsageError("use `perdure repl TREE`", "only trees and tasks have Final")
	}
	value, err := k.eval.value(ctx, source)
	if err != nil {
		return err
	}
	_, err = k.eval.SetVar(ctx, k.eval.ref,
		perdure.VarSpec{Name: perdure.VarFinal, Value: value, Cause: perdure.Cause{Source: "repl"}})
	if err != nil {
		return err
	}
	task, err := k.eval.Task(ctx, k.eval.own)
	if err != nil {
		return err
	}
	k.Printf("%s is %s\n", task.ID, task.State)
	return nil
}
