package state

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/muesli/cancelreader"
	"github.com/spf13/cobra"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// ReplCommand returns the command repl.
func ReplCommand(e *env.Env) *cobra.Command {
	c := &commands{Env: e}
	write := false
	cmd := &cobra.Command{
		Use:   "repl [TREE]",
		Short: "Read and change variables at a prompt",
		Long: "Read and change the variables of a tree, or of the session, at a prompt with line editing, history and " +
			"completion. Lines are Starlark, a dialect of Python: x = EXPRESSION sets a variable, an expression is printed, " +
			"lists and objects can be changed in place. Commands start with a colon; :help lists them. The session ends with " +
			":quit or at the end of the input. Piped lines run without a prompt.\n\n" +
			"The variables of a tree and its tasks are only read: what you assign is kept until the session ends. With " +
			"--write it is written to the tree. Sub-calls, such as llm_query, are refused in both cases.",
		Example: "perdure repl tree-1a2b3c4d\nperdure repl tree-1a2b3c4d --write\n" +
			"echo 'len(findings)' | perdure repl --session nightly",
		GroupID:           env.GroupState,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: c.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if c.scope.Tree != "" && c.scope.Tree != args[0] {
					return env.UsageError("omit one of them", "two trees given")
				}
				c.scope.Tree = args[0]
			}
			ref, err := c.ref()
			if err != nil {
				return err
			}
			why := env.Write
			if ref.Scope == perdure.ScopeTree && !write {
				why = env.Read
			}
			return c.run(why, func(ctx context.Context, t *target, _ []string) error {
				return c.repl(ctx, t, why == env.Read)
			})(cmd, args)
		},
	}
	c.scopeFlags(cmd)
	cmd.Flags().BoolVar(&write, "write", false, "write to the variables of a tree or task")
	cmd.Flags().BoolVar(&c.JSON, "json", false, "print values as JSON")
	return cmd
}

// console is a session at the prompt.
type console struct {
	*commands
	eval *evaluator
	in   lines
	// kept is a line that was read in advance.
	kept *string
}

func (c *commands) repl(ctx context.Context, t *target, readOnly bool) error {
	k := &console{commands: c, eval: &evaluator{target: t, functions: starlark.StringDict{}, asJSON: c.JSON,
		steps: maxSteps, print: func(text string) { c.Printf("%s\n", c.Out.Safe(text)) }}}
	if t.ref.Scope == perdure.ScopeTree {
		if err := k.own(ctx); err != nil {
			return err
		}
	}
	if readOnly {
		k.eval.local = make(map[string]json.RawMessage)
		c.Note("read-only: assignments end with this session; --write writes them to %s", place(t.ref))
	}
	in, err := cancelreader.NewReader(c.Stdin)
	if err != nil { // reading a file does not block
		in = notCanceled{c.Stdin}
	}
	defer in.Close()
	stop := context.AfterFunc(ctx, func() { in.Cancel() })
	defer stop()
	k.in = &pipedLines{bufio.NewReader(in)}
	file, ok := c.Stdin.(*os.File)
	if ok && c.Out.Terminal && c.StdinTerminal() {
		k.in = newTypedLines(in, c.Out, k.completer(ctx), rawTerminal(file))
		c.Printf("%s\n", c.Out.Dim("variables of "+place(t.ref)+"; :help lists commands, :quit exits"))
	}
	return k.loop(ctx)
}

// own sets the task of the state.
func (k *console) own(ctx context.Context) error {
	if k.eval.own = k.eval.ref.Task; k.eval.own != 0 {
		_, err := k.eval.Task(ctx, k.eval.own)
		return err
	}
	tree, err := k.eval.Tree(ctx, k.eval.ref.Tree)
	k.eval.own = tree.Root
	return err
}

// notCanceled is a reader that does not block.
type notCanceled struct{ io.Reader }

// Cancel does nothing.
func (notCanceled) Cancel() bool { return false }

// Close does nothing.
func (notCanceled) Close() error { return nil }

var errQuit = errors.New("quit")

// loop runs lines until the input ends. Lines that failed are a failure of the command, unless
// the user typed them.
func (k *console) loop(ctx context.Context) error {
	failed := 0
	for {
		line, err := k.read(k.prompt())
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return k.failedLines(failed)
		case errors.Is(err, errLongLine):
			failed++
			k.printError(err)
			continue
		case err != nil:
			return fmt.Errorf("read line: %w", err)
		}
		err = k.do(ctx, line)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errQuit) {
			return k.failedLines(failed)
		}
		if err != nil {
			failed++
			k.printError(err)
		}
	}
}

// failedLines returns the error about lines of a script that failed.
func (k *console) failedLines(n int) error {
	if _, script := k.in.(*pipedLines); n == 0 || !script {
		return nil
	}
	return &env.Exit{Status: env.StatusFailed, Msg: human.Count(int64(n), "line") + " failed"}
}

func (k *console) read(prompt string) (string, error) {
	if k.kept != nil {
		line := *k.kept
		k.kept = nil
		return line, nil
	}
	return k.in.read(prompt)
}

func (k *console) prompt() string {
	ref := k.eval.ref
	switch {
	case ref.Task != 0:
		return ref.Task.String() + "> "
	case ref.Tree != "":
		return string(ref.Tree) + "> "
	case ref.Scope == perdure.ScopeGlobal:
		return "global> "
	}
	return env.OneLine(ref.Session+ref.Name, 30) + "> "
}

// printError prints an error with its hint.
func (k *console) printError(err error) {
	fmt.Fprintf(k.Err, "error: %s\n", k.Err.Safe(err.Error()))
	if hint := perdure.HintOf(err); hint != "" {
		fmt.Fprintf(k.Err, "hint: %s\n", k.Err.Safe(hint))
	}
}

// do runs a command or a statement.
func (k *console) do(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	if name, found := strings.CutPrefix(line, ":"); found {
		name, rest, _ := strings.Cut(name, " ")
		return k.command(ctx, name, strings.TrimSpace(rest))
	}
	if line == "" {
		return nil
	}
	file, err := k.parse(line)
	if err != nil {
		return plain(err)
	}
	shown, err := k.eval.run(ctx, file)
	if shown != "" {
		k.Printf("%s\n", k.Out.Safe(shown))
	}
	return err
}

// parse reads the lines of a statement.
func (k *console) parse(first string) (*syntax.File, error) {
	next, last, count := &first, "", 0
	file, err := language().ParseCompoundStmt("", func() ([]byte, error) {
		line := ""
		if next != nil {
			line, next = *next, nil
		} else {
			var err error
			if line, err = k.read("... "); err != nil {
				return nil, err
			}
		}
		last = line
		count++
		return []byte(line + "\n"), nil
	})
	if err != nil || len(file.Stmts) == 0 {
		return file, err
	}
	// The end of a block is found by reading the next statement.
	_, end := file.Stmts[len(file.Stmts)-1].Span()
	if count > int(end.Line) && strings.TrimSpace(last) != "" {
		k.kept = &last
	}
	return file, nil
}

// words returns the candidates for completion.
func (k *console) words(ctx context.Context) []string {
	words := append(starlark.Universe.Keys(), "json", "math")
	words = append(words, k.eval.functions.Keys()...)
	words = slices.AppendSeq(words, maps.Keys(k.eval.local))
	for v, err := range k.eval.AllVars(ctx, k.eval.ref) {
		if err != nil {
			break // complete without variables
		}
		words = append(words, v.Name)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func (k *console) completer(ctx context.Context) completer {
	return func(line string, pos int) (string, int, []string) {
		if !strings.HasPrefix(line, ":") {
			return completeWord(line, pos, k.words(ctx))
		}
		command, _, behind := strings.Cut(line[:pos], " ")
		if !behind {
			return completeWord(line, pos, commandWords())
		}
		if command == ":rollback" || command == ":diff" {
			var list []string
			all, _ := k.eval.Checkpoints(ctx, k.eval.ref) // after an error, nothing is completed
			for _, one := range all {
				list = append(list, one.Name)
			}
			return completeWord(line, pos, list)
		}
		return completeWord(line, pos, k.words(ctx))
	}
}
