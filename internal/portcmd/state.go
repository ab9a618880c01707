package portcmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cmdline"
	"github.com/perdure/perdure/internal/statecmd"
)

// stateFlags say which state an export or import of one is about.
type stateFlags struct{ scope, session, tree, task, name string }

func (s *stateFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.scope, "scope", "", "global, session, tree or temporary (default: that of the tree or task given, else session)")
	f.StringVar(&s.session, "session", "", "`ID` of the session (default: PERDURE_SESSION, else one for each terminal)")
	f.StringVar(&s.tree, "tree", "", "the `TREE`")
	f.StringVar(&s.task, "task", "", "the `TASK` of a tree; alone it is enough")
	f.StringVar(&s.name, "name", "", "the `NAME` of a temporary state")
	cmdline.Complete(cmd, "scope", perdure.ScopeGlobal, perdure.ScopeSession, perdure.ScopeTree, perdure.ScopeTemporary)
}

func (s *stateFlags) given() bool { return *s != stateFlags{} }

// ref is the state that the flags name.
func (s *stateFlags) ref(ctx context.Context, store *perdure.Store, getenv func(string) string) (perdure.StateRef, error) {
	ref := perdure.StateRef{Scope: perdure.Scope(s.scope)}
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
	switch ref.Scope {
	case perdure.ScopeGlobal:
		return ref, s.only(ref.Scope)
	case perdure.ScopeSession:
		if ref.Session = s.session; ref.Session == "" {
			ref.Session = statecmd.Session(getenv)
		}
		return ref, s.only(ref.Scope, "session")
	case perdure.ScopeTemporary:
		if ref.Name = s.name; ref.Name == "" {
			return ref, cmdline.UsageError("--name says which", "--scope temporary needs a name")
		}
		return ref, s.only(ref.Scope, "name")
	case perdure.ScopeTree:
		return s.inTree(ctx, store, ref)
	}
	return ref, cmdline.UsageError("there are global, session, tree and temporary", "%q is not a scope", s.scope)
}

func (s *stateFlags) inTree(ctx context.Context, store *perdure.Store, ref perdure.StateRef) (perdure.StateRef, error) {
	if err := s.only(ref.Scope, "tree", "task"); err != nil {
		return ref, err
	}
	if s.tree == "" && s.task == "" {
		return ref, cmdline.UsageError("--tree or --task says which", "--scope tree needs a tree")
	}
	var err error
	if s.tree != "" {
		if ref.Tree, err = perdure.ParseTreeID(s.tree); err != nil {
			return ref, err
		}
	}
	if s.task == "" {
		return ref, nil
	}
	if ref.Task, err = perdure.ParseTaskID(s.task); err != nil {
		return ref, err
	}
	t, err := store.Task(ctx, ref.Task)
	if err != nil {
		return ref, err
	}
	if ref.Tree != "" && ref.Tree != t.Tree {
		return ref, &perdure.Error{Code: perdure.CodeNotFound, Msg: "the tree " + string(ref.Tree) + " has no task " + t.ID.String()}
	}
	ref.Tree = t.Tree
	return ref, nil
}

// only refuses flags that say nothing about a scope.
func (s *stateFlags) only(scope perdure.Scope, fitting ...string) error {
	for name, value := range map[string]string{"session": s.session, "tree": s.tree, "task": s.task, "name": s.name} {
		if value != "" && !strings.Contains(" "+strings.Join(fitting, " ")+" ", " "+name+" ") {
			return cmdline.UsageError("leave one of them out", "--%s has no meaning in the scope %s", name, scope)
		}
	}
	return nil
}
