package state

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// StateFlags name a state on the command line.
type StateFlags struct{ Scope, Session, Tree, Task, Name string }

// Add adds the flags to a command; otherwise says what is meant where none is
// given.
func (s *StateFlags) Add(cmd *cobra.Command, otherwise string, completeTrees cobra.CompletionFunc) {
	f := cmd.Flags()
	f.StringVar(&s.Scope, "scope", "", "global, session, tree or temporary (default: that of the tree or task given"+
		otherwise+")")
	f.StringVar(&s.Session, "session", "", "`ID` of the session (default: PERDURE_SESSION, else one for each terminal)")
	f.StringVar(&s.Tree, "tree", "", "the `TREE`")
	f.StringVar(&s.Task, "task", "", "the `TASK` of a tree; alone it is enough")
	f.StringVar(&s.Name, "name", "", "the `NAME` of a temporary state")
	env.Complete(cmd, "scope", perdure.ScopeGlobal, perdure.ScopeSession, perdure.ScopeTree, perdure.ScopeTemporary)
	env.CompleteWith(cmd, "tree", func(cmd *cobra.Command, _ []string, text string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		return completeTrees(cmd, nil, text)
	})
	for _, flag := range []string{"session", "task", "name"} {
		env.CompleteWith(cmd, flag, cobra.NoFileCompletions)
	}
}

// Ref is the state that the flags name, in a session of the environment when they
// name none. A task's tree may be missing.
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
			return ref, env.UsageError("--name says which", "--scope temporary needs a name")
		}
	default:
		return ref, env.UsageError("there are global, session, tree and temporary", "%q is not a scope", s.Scope)
	}
	return ref, s.fit(ref.Scope)
}

func (s *StateFlags) session(getenv func(string) string) string {
	return cmp.Or(s.Session, Session(getenv))
}

// scope is the one given, or that of what is given.
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
		return "", 0, env.UsageError("--tree or --task says which", "--scope tree needs a tree")
	}
	if s.Tree != "" {
		if tree, err = perdure.ParseTreeID(s.Tree); err != nil {
			return "", 0, err
		}
	}
	if s.Task != "" {
		task, err = perdure.ParseTaskID(s.Task)
	}
	return tree, task, err
}

// fit refuses flags that say nothing about a scope.
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
			return NoMeaning(f.name, scope)
		}
	}
	return nil
}

// NoMeaning refuses a flag that says nothing about a scope.
func NoMeaning(flag string, scope perdure.Scope) error {
	return env.UsageError("leave one of them out", "--%s has no meaning in the scope %s", flag, scope)
}

// InTree holds a state against the task it names: the tree is the task's.
func InTree(ref *perdure.StateRef, task *perdure.Task) error {
	if ref.Tree != "" && ref.Tree != task.Tree {
		return &perdure.Error{Code: perdure.CodeNotFound, Msg: "the tree " + string(ref.Tree) + " has no task " +
			task.ID.String()}
	}
	ref.Tree = task.Tree
	return nil
}

// scopeFlags say which state a command is about.
type scopeFlags struct {
	StateFlags
	// to is where a task's command writes instead of its own state.
	to string
}

// The values of --to.
const (
	toParent = "parent"
	toTree   = "tree"
)

func (c *commands) scopeFlags(cmd *cobra.Command, s *scopeFlags) {
	s.Add(cmd, "; in a program that a run started its task; else session", c.CompleteTrees)
}

func toFlag(cmd *cobra.Command, s *scopeFlags) {
	cmd.Flags().StringVar(&s.to, "to", "", "write to the state of the task's `parent` or of its tree instead")
	env.Complete(cmd, "to", toParent, toTree)
}

// ref names the state that the flags say. A task's tree may be missing: the API
// finds it.
func (c *commands) ref(s *scopeFlags) (perdure.StateRef, error) {
	c.inRun(&s.StateFlags)
	ref, err := s.Ref(c.Getenv)
	if err == nil && s.to != "" && s.Task == "" {
		err = env.UsageError("--task says from which task it goes up", "--to needs a task")
	}
	return ref, err
}

// inRun takes the task for which a program of a run was started, when no flag
// says otherwise.
func (c *commands) inRun(s *StateFlags) {
	elsewhere := s.Tree != "" || s.Task != "" || s.Name != "" || s.Session != ""
	if s.Scope == "" && !elsewhere || s.Scope == string(perdure.ScopeTree) && s.Tree == "" && s.Task == "" {
		s.Tree, s.Task = c.Getenv("PERDURE_TREE"), c.Getenv("PERDURE_TASK")
	}
}

// climb moves the target from a task to what --to says.
func (s *scopeFlags) climb(ctx context.Context, t *target) error {
	if s.to == "" {
		return nil
	}
	if s.to != toParent && s.to != toTree {
		return env.UsageError("there are parent and tree", "--to is %q", s.to)
	}
	task, err := t.Task(ctx, t.ref.Task)
	if err != nil {
		return err
	}
	if err := InTree(&t.ref, &task.Task); err != nil {
		return err
	}
	if t.ref.Task = task.Parent; s.to == toTree {
		t.ref.Task = 0
	} else if task.Parent == 0 {
		return env.UsageError("leave --to out", "%s is the root of its tree and has no parent", task.ID)
	}
	return nil
}
