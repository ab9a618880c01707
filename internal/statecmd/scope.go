package statecmd

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cmdline"
)

// scopeFlags say which state a command is about.
type scopeFlags struct {
	scope, session, tree, task, name string
	// to is where a task's command writes instead of its own state.
	to string
}

// The values of --to.
const (
	toParent = "parent"
	toTree   = "tree"
)

func (c *commands) scopeFlags(cmd *cobra.Command, s *scopeFlags) {
	f := cmd.Flags()
	f.StringVar(&s.scope, "scope", "", "global, session, tree or temporary (default: that of the tree or task given; in a program that a run started its task; else session)")
	f.StringVar(&s.session, "session", "", "`ID` of the session (default: PERDURE_SESSION, else one for each terminal)")
	f.StringVar(&s.tree, "tree", "", "the `TREE`")
	f.StringVar(&s.task, "task", "", "the `TASK` of a tree; alone it is enough")
	f.StringVar(&s.name, "name", "", "the `NAME` of a temporary state")
	cmdline.Complete(cmd, "scope", perdure.ScopeGlobal, perdure.ScopeSession, perdure.ScopeTree, perdure.ScopeTemporary)
	cmdline.CompleteWith(cmd, "tree", func(cmd *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.CompleteTrees(cmd, nil, text)
	})
	for _, flag := range []string{"session", "task", "name"} {
		cmdline.CompleteWith(cmd, flag, cobra.NoFileCompletions)
	}
}

func toFlag(cmd *cobra.Command, s *scopeFlags) {
	cmd.Flags().StringVar(&s.to, "to", "", "write to the state of the task's `parent` or of its tree instead")
	cmdline.Complete(cmd, "to", toParent, toTree)
}

// ref names the state that the flags say. A task's tree may be missing: the API
// finds it.
func (c *commands) ref(s *scopeFlags) (perdure.StateRef, error) {
	ref := perdure.StateRef{Scope: perdure.Scope(s.scope)}
	c.inRun(s)
	if ref.Scope == "" {
		switch {
		case s.tree != "" || s.task != "":
			ref.Scope = perdure.ScopeTree
		case s.name != "":
			ref.Scope = perdure.ScopeTemporary
		default:
			ref.Scope = perdure.ScopeSession
		}
	}
	var err error
	session := func() string { return cmp.Or(s.session, Session(c.Getenv)) }
	switch ref.Scope {
	case perdure.ScopeGlobal:
	case perdure.ScopeSession:
		ref.Session = session()
	case perdure.ScopeTree:
		ref.Session = session()
		if ref.Tree, ref.Task, err = s.place(); err != nil {
			return ref, err
		}
	case perdure.ScopeTemporary:
		if ref.Name = s.name; ref.Name == "" {
			return ref, cmdline.UsageError("--name says which", "--scope temporary needs a name")
		}
	default:
		return ref, cmdline.UsageError("there are global, session, tree and temporary", "%q is not a scope", s.scope)
	}
	return ref, s.fit(ref.Scope)
}

// inRun takes the task for which a program of a run was started, when no flag
// says otherwise.
func (c *commands) inRun(s *scopeFlags) {
	elsewhere := s.tree != "" || s.task != "" || s.name != "" || s.session != ""
	if s.scope == "" && !elsewhere || s.scope == string(perdure.ScopeTree) && s.tree == "" && s.task == "" {
		s.tree, s.task = c.Getenv("PERDURE_TREE"), c.Getenv("PERDURE_TASK")
	}
}

func (s *scopeFlags) place() (tree perdure.TreeID, task perdure.TaskID, err error) {
	if s.tree == "" && s.task == "" {
		return "", 0, cmdline.UsageError("--tree or --task says which", "--scope tree needs a tree")
	}
	if s.tree != "" {
		if tree, err = perdure.ParseTreeID(s.tree); err != nil {
			return "", 0, err
		}
	}
	if s.task != "" {
		task, err = perdure.ParseTaskID(s.task)
	}
	return tree, task, err
}

// fit refuses flags that say nothing about a scope.
func (s *scopeFlags) fit(scope perdure.Scope) error {
	inTree := scope == perdure.ScopeTree
	for _, f := range []struct {
		name, value string
		fits        bool
	}{
		{"session", s.session, inTree || scope == perdure.ScopeSession},
		{"tree", s.tree, inTree},
		{"task", s.task, inTree},
		{"name", s.name, scope == perdure.ScopeTemporary},
		{"to", s.to, inTree && s.task != ""},
	} {
		switch {
		case f.value == "" || f.fits:
		case f.name == "to":
			return cmdline.UsageError("--task says from which task it goes up", "--to needs a task")
		default:
			return cmdline.UsageError("leave one of them out", "--%s has no meaning in the scope %s", f.name, scope)
		}
	}
	return nil
}

// climb moves the target from a task to what --to says.
func (s *scopeFlags) climb(ctx context.Context, t *target) error {
	if s.to == "" {
		return nil
	}
	if s.to != toParent && s.to != toTree {
		return cmdline.UsageError("there are parent and tree", "--to is %q", s.to)
	}
	task, err := t.Task(ctx, t.ref.Task)
	if err != nil {
		return err
	}
	if t.ref.Tree != "" && t.ref.Tree != task.Tree {
		return &perdure.Error{Code: perdure.CodeNotFound, Msg: "the tree " + string(t.ref.Tree) + " has no task " + task.ID.String()}
	}
	if t.ref.Tree, t.ref.Task = task.Tree, task.Parent; s.to == toTree {
		t.ref.Task = 0
	} else if task.Parent == 0 {
		return cmdline.UsageError("leave --to out", "%s is the root of its tree and has no parent", task.ID)
	}
	return nil
}
