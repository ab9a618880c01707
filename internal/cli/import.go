package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg"
	"github.com/perdure/perdure/internal/config"
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
	complete(cmd, "scope", []string{string(perdure.ScopeGlobal), string(perdure.ScopeSession), string(perdure.ScopeTree), string(perdure.ScopeTemporary)})
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
			return ref, usageError("--name says which", "--scope temporary needs a name")
		}
		return ref, s.only(ref.Scope, "name")
	case perdure.ScopeTree:
		return s.inTree(ctx, store, ref)
	}
	return ref, usageError("there are global, session, tree and temporary", "%q is not a scope", s.scope)
}

func (s *stateFlags) inTree(ctx context.Context, store *perdure.Store, ref perdure.StateRef) (perdure.StateRef, error) {
	if err := s.only(ref.Scope, "tree", "task"); err != nil {
		return ref, err
	}
	if s.tree == "" && s.task == "" {
		return ref, usageError("--tree or --task says which", "--scope tree needs a tree")
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
			return usageError("leave one of them out", "--%s has no meaning in the scope %s", name, scope)
		}
	}
	return nil
}

type importFlags struct {
	state, dryRun, asJSON bool
	ref                   stateFlags
}

func (a *app) newImportCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import PATH",
		Short: "Take in the trees, states and loops of a .aiwg folder",
		Long: "Read a .aiwg folder (or the folder it is in), a tasks.json, a tree.json or a state into the store. Trees come in as " +
			"records: what ended keeps its state and result, the rest is queued and executed by nobody. What was corrected and " +
			"what could not be read is listed with file and line; then the exit status is 3. Nothing outside of the folder is " +
			"opened, also not through links, but for the aiwg.yml beside it. Importing twice changes nothing; an import that was " +
			"interrupted is completed by the next.\n\n" +
			"Loops (ralph/loops) come in as records, too: a tree whose root holds the documents and whose tasks are the iterations. " +
			"Of aiwg.yml the section agent_persistence is kept as text and its settings are listed; none of them changes what " +
			"perdure does.\n\n" +
			"With --state, PATH is one state (perdure schema rlm-state); the flags say where it goes, otherwise what stands in it.",
		Example: "perdure import .aiwg --dry-run\n perdure import .aiwg\n perdure import --state state.json --scope global",
		GroupID: groupManage,
		Args:    arguments(1, 1, "a folder or a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.ref.given() && !f.state {
				return usageError("--state reads a state", "--scope, --session, --tree, --task and --name are for --state")
			}
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.importPath(cmd.Context(), l, args[0], &f)
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "change nothing, tell what would come in")
	cmd.Flags().BoolVar(&f.state, "state", false, "read one state")
	f.ref.add(cmd)
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// importPath writes to the store itself, also beside a daemon.
func (a *app) importPath(ctx context.Context, l *config.Loaded, path string, f *importFlags) error {
	var report *aiwg.Report
	l, forget, err := unmade(l, f.dryRun)
	if err != nil {
		return err
	}
	defer forget()
	err = a.withStore(ctx, l, true, func(store *perdure.Store) (err error) {
		cfg := aiwg.ImportConfig{Path: a.path(path), State: f.state, DryRun: f.dryRun}
		if f.ref.given() {
			if cfg.Ref, err = f.ref.ref(ctx, store, a.env.getenv); err != nil {
				return err
			}
		}
		report, err = aiwg.Import(ctx, store, cfg)
		return err
	})
	if err != nil {
		return err
	}
	report.Path = path
	for i := range report.Settings {
		report.Settings[i].Own = config.Counterpart(report.Settings[i].Name)
	}
	if f.asJSON {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.printImport(report)
	}
	if report.Count(aiwg.NotRead) > 0 {
		return &outcome{status: exitIncomplete}
	}
	return nil
}

// unmade gives a dry run a store for a moment where there is none, so that it
// makes none.
func unmade(l *config.Loaded, dryRun bool) (*config.Loaded, func(), error) {
	if !dryRun || hasStore(l) {
		return l, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "perdure-import-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the dry run: %w", err)
	}
	moment := *l
	moment.Dir = dir
	return &moment, func() { _ = os.RemoveAll(dir) }, nil // a temporary folder
}

// shownNotes bounds the notes of one kind that are printed.
const shownNotes = 100

func (a *app) printImport(r *aiwg.Report) {
	verb := "imported"
	if r.DryRun {
		verb = "would import"
	}
	a.printf("%s %s, %s, %s (%s, %s, %s)\n", verb, count(int64(r.Trees), "tree"), count(int64(r.Tasks), "task"), count(int64(r.States), "state"),
		count(int64(r.Variables), "variable"), count(int64(r.Mutations), "mutation"), count(int64(r.Checkpoints), "checkpoint"))
	if r.PresentTrees+r.PresentTasks+r.PresentStates > 0 {
		a.printf("there already: %s, %s, %s\n", count(int64(r.PresentTrees), "tree"), count(int64(r.PresentTasks), "task"), count(int64(r.PresentStates), "state"))
	}
	a.printLoops(r, verb)
	for _, kind := range []struct{ kind, title string }{{aiwg.NotRead, "could not be read"}, {aiwg.Missing, "not there"}, {aiwg.Corrected, "corrected"},
		{aiwg.Differs, "otherwise in the store"}, {aiwg.Left, "left where it is"}} {
		n := r.Count(kind.kind)
		if n == 0 {
			continue
		}
		a.printf("\n%s (%d):\n", a.out.bold(kind.title), n)
		shown := 0
		for i := range r.Notes {
			if r.Notes[i].Kind != kind.kind {
				continue
			}
			if shown == shownNotes {
				a.printf("  … and %d more; --json lists all\n", n-shown)
				break
			}
			shown++
			a.printf("  %s\n", visible(noteLine(&r.Notes[i])))
		}
	}
}

// printLoops tells of loops and of their settings.
func (a *app) printLoops(r *aiwg.Report, verb string) {
	if r.Loops+r.Documents > 0 {
		a.printf("%s %s, %s (%s)\n", verb, count(int64(r.Loops), "loop"), count(int64(r.Iterations), "iteration"), count(int64(r.Documents), "file"))
	}
	if r.PresentLoops > 0 {
		a.printf("there already: %s, %s\n", count(int64(r.PresentLoops), "loop"), count(int64(r.PresentIterations), "iteration"))
	}
	if len(r.Settings) == 0 {
		return
	}
	a.printf("\n%s (%d; kept as text, none of them changes what perdure does):\n", a.out.bold("settings of agent_persistence"), len(r.Settings))
	var without []string
	for i := range r.Settings {
		s := &r.Settings[i]
		line := fmt.Sprintf("%s:%d: %s = %s", s.File, s.Line, s.Name, s.Value)
		switch {
		case s.Problem != "":
			a.printf("  %s\n", visible(line+" "+s.Problem))
		case s.Own != "":
			a.printf("  %s\n", visible(line+" is perdure's "+s.Own))
		default:
			without = append(without, s.Name)
		}
	}
	if len(without) > 0 {
		a.printf("  perdure has no setting that means the same as %s\n", visible(strings.Join(without, ", ")))
	}
}

func noteLine(n *aiwg.Note) string {
	if n.Line == 0 {
		return fmt.Sprintf("%s: %s", n.File, n.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", n.File, n.Line, n.Column, n.Message)
}
