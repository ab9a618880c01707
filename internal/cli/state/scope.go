package state

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// StateFlags are the flags that select a state.
type StateFlags struct{ Scope, Session, Tree, Task, Name string }

// Add adds the flags to a command. Otherwise describes the scope without flags.
func (s *StateFlags) Add(cmd *cobra.Command, otherwise string, completeTrees cobra.CompletionFunc) {
	f := cmd.Flags()
	f.StringVar(&s.Scope, "scope", "", "`SCOPE` global, session, tree or temporary; default: tree with --tree or --task"+
		otherwise)
	f.StringVar(&s.Session, "session", "", "`ID` session; default: PERDURE_SESSION, else one for each terminal")
	f.StringVar(&s.Tree, "tree", "", "`TREE` tree")
	f.StringVar(&s.Task, "task", "", "`TASK` task of a tree")
	f.StringVar(&s.Name, "name", "", "`NAME` name of a temporary state")
	env.Complete(cmd, "scope", perdure.ScopeGlobal, perdure.ScopeSession, perdure.ScopeTree, perdure.ScopeTemporary)
	env.CompleteWith(cmd, "tree", func(cmd *cobra.Command, _ []string, text string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		return completeTrees(cmd, nil, text)
	})
	for _, flag := range []string{"session", "task", "name"} {
		env.CompleteWith(cmd, flag, cobra.NoFileCompletions)
	}
}

// Ref returns the state that the flags select. Without --session it uses the session of
// the environment. A task's tree can be missing.
func (s *StateFlags) Ref(getenv func(string) string) (ref perdure.StateRef, err error) {
	ref.Scope = s.scope()
	switch ref.Scope {
	case perdure.ScopeGlobal:
	case perdure.ScopeSession:
		ref.Session = s.session(getenv)
	case perdure.ScopeTree:
		ref.Session = s.session(getenv)
		if ref.Tree, ref.Task, err = s.place(); err != nil {
			return ref, err
		}
	case perdure.ScopeTemporary:
		if ref.Name = s.Name; ref.Name == "" {
			return ref, env.UsageError("add --name", "--scope temporary needs a name")
		}
	default:
		return ref, env.UsageError("the scopes are global, session, tree and temporary", "unknown scope %q", s.Scope)
	}
	return ref, s.fit(ref.Scope)
}

// Given reports whether a flag was given.
func (s *StateFlags) Given() bool { return *s != StateFlags{} }

// Stored returns the state in a store that the flags select. The state of a task is that
// alone, without a session.
func (s *StateFlags) Stored(ctx context.Context, store *perdure.Store, getenv func(string) string) (perdure.StateRef,
	error) {
	ref, err := s.Ref(getenv)
	if err != nil || ref.Scope != perdure.ScopeTree {
		return ref, err
	}
	if s.Session != "" {
		return ref, notApplicable("session", ref.Scope)
	}
	ref.Session = ""
	if ref.Tree != "" {
		if ref.Tree, err = store.FindTree(ctx, string(ref.Tree)); err != nil {
			return ref, err
		}
	}
	if ref.Task == 0 {
		return ref, nil
	}
	if ref.Task, err = store.FindTask(ctx, ref.Task); err != nil {
		return ref, err
	}
	task, err := store.Task(ctx, ref.Task)
	if err != nil {
		return ref, err
	}
	return ref, inTree(&ref, &task)
}

func (s *StateFlags) session(getenv func(string) string) string {
	return cmp.Or(s.Session, Session(getenv))
}

// scope returns the given scope, or that of the other flags.
func (s *StateFlags) scope() perdure.Scope {
	switch {
	case s.Scope != "":
		return perdure.Scope(s.Scope)
	case s.Tree != "" || s.Task != "":
		return perdure.ScopeTree
	case s.Name != "":
		return perdure.ScopeTemporary
	}
	return perdure.ScopeSession
}

func (s *StateFlags) place() (tree perdure.TreeID, task perdure.TaskID, err error) {
	if s.Tree == "" && s.Task == "" {
		return "", 0, env.UsageError("add --tree or --task", "--scope tree needs a tree")
	}
	if s.Tree != "" {
		if err := env.CheckTree(s.Tree); err != nil {
			return "", 0, err
		}
		tree = perdure.TreeID(s.Tree) // or the beginning of one
	}
	if s.Task != "" {
		task, err = perdure.ParseTaskID(s.Task)
	}
	return tree, task, err
}

// fit returns an error for flags that do not apply to a scope.
func (s *StateFlags) fit(scope perdure.Scope) error {
	inTree := scope == perdure.ScopeTree
	for _, f := range []struct {
		name, value string
		fits        bool
	}{
		{"session", s.Session, inTree || scope == perdure.ScopeSession},
		{"tree", s.Tree, inTree},
		{"task", s.Task, inTree},
		{"name", s.Name, scope == perdure.ScopeTemporary},
	} {
		if f.value != "" && !f.fits {
			return notApplicable(f.name, scope)
		}
	}
	return nil
}

func notApplicable(flag string, scope perdure.Scope) error {
	return env.UsageError("omit one of them", "--%s does not apply to scope %s", flag, scope)
}

// inTree sets the tree of a state to that of its task, or returns an error if they differ.
func inTree(ref *perdure.StateRef, task *perdure.Task) error {
	if ref.Tree != "" && ref.Tree != task.Tree {
		return env.NotFound("", "tree %s has no task %s", ref.Tree, task.ID)
	}
	ref.Tree = task.Tree
	return nil
}

// scopeFlags are the flags that select the state of a command.
type scopeFlags struct {
	StateFlags
	// to is the state to write to instead of the task's own.
	to string
}

// The values of --to.
const (
	toParent = "parent"
	toTree   = "tree"
)

func (c *commands) scopeFlags(cmd *cobra.Command) {
	c.scope.Add(cmd, ", else session; in a program of a run: its task", c.CompleteTrees)
}

func (c *commands) toFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.scope.to, "to", "",
		"`STATE` write to the state of the task's parent, or of its tree: parent or tree")
	env.Complete(cmd, "to", toParent, toTree)
}

// ref returns the state that the flags select. A task's tree can be missing: the API finds
// it. In a program of a run, the state is that of its task unless a flag selects another.
func (c *commands) ref() (perdure.StateRef, error) {
	s := &c.scope
	elsewhere := s.Tree != "" || s.Task != "" || s.Name != "" || s.Session != ""
	if s.Scope == "" && !elsewhere || s.Scope == string(perdure.ScopeTree) && s.Tree == "" && s.Task == "" {
		s.Tree, s.Task = c.Getenv("PERDURE_TREE"), c.Getenv("PERDURE_TASK")
	}
	ref, err := s.Ref(c.Getenv)
	if err == nil && s.to != "" && s.Task == "" {
		err = env.UsageError("add --task", "--to needs a task")
	}
	return ref, err
}

// climb moves the target from a task to the state of --to.
func (s *scopeFlags) climb(ctx context.Context, t *target) error {
	if s.to == "" {
		return nil
	}
	if s.to != toParent && s.to != toTree {
		return env.UsageError("write parent or tree", "--to is %q", s.to)
	}
	task, err := t.Task(ctx, t.ref.Task)
	if err != nil {
		return err
	}
	if err := inTree(&t.ref, &task.Task); err != nil {
		return err
	}
	if t.ref.Task = task.Parent; s.to == toTree {
		t.ref.Task = 0
	} else if task.Parent == 0 {
		return env.UsageError("omit --to", "%s is the root of its tree and has no parent", task.ID)
	}
	return nil
}
