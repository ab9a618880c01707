package cli

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/acp"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/loop/record"
)

func (a *app) newACPCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve an editor over the Agent Client Protocol",
		Long: "Serve an editor over the Agent Client Protocol on standard input and output. Each prompt starts a run or a " +
			"loop in the folder of the session, in the mode that the editor shows: `perdure acp` and `perdure acp run` " +
			"begin in mode run, `perdure acp loop` in mode loop. Their flags are those of `perdure run` and `perdure loop " +
			"run`; the other mode uses the settings.\n\n" +
			"Commands in a prompt: /run QUESTION and /loop TASK choose the mode of one prompt, /until COMMAND and /agent " +
			"AGENT change the next loops, /resume continues the last run or loop, /status shows its state. A gate becomes " +
			"a permission request. A stop in the editor pauses a loop and cancels a run. The ID of a session, a tree or a " +
			"loop can be loaded.\n\n" +
			"Standard output carries the protocol only. When the editor closes standard input, loops pause and runs stop; " +
			"both can be continued.",
		Example: "perdure acp\n perdure acp run --model openai:gpt-4o\n" +
			" perdure acp loop --until \"go test ./...\" --agent claude",
		GroupID: env.GroupRun,
		Args:    env.KnownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serveEditor(cmd, acp.ModeRun, nil) },
	}
	cmd.AddCommand(a.newACPModeCommand(acp.ModeRun), a.newACPModeCommand(acp.ModeLoop))
	return cmd
}

// newACPModeCommand returns the command that serves an editor in a mode with the flags of its trees.
func (a *app) newACPModeCommand(mode acp.Mode) *cobra.Command {
	cmd := &cobra.Command{
		Use:     string(mode),
		Short:   "Serve an editor whose prompts are questions",
		Long:    "Serve an editor as `perdure acp` does. Prompts start runs with these flags.",
		Example: "perdure acp run --model openai:gpt-4o",
		Args:    env.Arguments(0, 0, "no arguments"),
	}
	env.UsesActing(cmd)
	check := func() error { return nil }
	if mode == acp.ModeLoop {
		cmd.Short = "Serve an editor whose prompts are tasks of loops"
		cmd.Long = "Serve an editor as `perdure acp` does. Prompts start loops with these flags."
		cmd.Example = "perdure acp loop --until \"go test ./...\" --agent claude"
		check = loop.NewStarter(a.Env, cmd).Check
	} else {
		var f runFlags
		f.registerContext(cmd)
		f.registerTree(cmd)
		groupRunFlags(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := check(); err != nil {
			return err
		}
		return a.serveEditor(cmd, mode, a.Args[slices.Index(a.Args, string(mode))+1:])
	}
	return cmd
}

// serveEditor serves an editor. Flags are those of the trees of a mode.
func (a *app) serveEditor(cmd *cobra.Command, mode acp.Mode, flags []string) error {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return acp.Serve(cmd.Context(), acp.Config{
		Host: &acpHost{a: a, flags: map[acp.Mode][]string{mode: flags}}, View: acpView{a}, Mode: mode,
		Version: env.ThisBuild().Version, User: env.User(), Logger: log,
	}, a.Stdin, unclosed{a.Stdout})
}

// unclosed is a writer that stays open.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

// acpView writes what happens for an editor.
type acpView struct{ a *app }

// Line returns an event of a loop as one line.
func (v acpView) Line(e *perdure.Event) string { return loop.Line(v.a.Env, e) }

// Summary returns the state of a loop as one line.
func (v acpView) Summary(l *record.Loop) string { return loop.Summary(l) }

// Answer returns the answer of a run, and why it is incomplete or missing.
func (v acpView) Answer(r *client.Result) (text, problem string) {
	if text = answerText(r); text != "" {
		text += footnotes(r)
	}
	if exit, ok := errors.AsType[*env.Exit](judge(r, nil)); ok {
		problem = strings.TrimSpace(exit.Msg + "\n\n" + exit.Hint)
	}
	return text, problem
}
