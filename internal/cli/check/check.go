// Package check implements the command check: it finds regressions between two
// versions of the files without a loop, before a commit or in CI. Package gitdiff
// reads the versions, package detect compares them.
package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/detect"
)

type commands struct{ *env.Env }

// options are the flags.
type options struct {
	base, loop, mode    string
	staged, json, sarif bool
}

// Command makes the command with its subcommand.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var o options
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Look for signs that a change deletes tests, weakens checks or silences errors",
		Long: "Compare two versions of the files and tell what in the change takes away what holds a program to its " +
			"promises: tests " +
			"deleted or skipped, assertions weakened, validation and error handling removed, complaints of tools silenced, " +
			"features " +
			"stubbed, configuration of checks changed. They are the signs that loops watch for; here without a loop and " +
			"without a store.\n\n" +
			"By default the files as they are, with those that git does not know yet, are compared with the last commit. " +
			"--staged compares " +
			"what is staged, for a hook before the commit. --base REV compares with what REV has in common with the last " +
			"commit, as " +
			"reviews do; --base A..B compares two commits as they are, A...B the second with what they have in common. --base " +
			"loop:baseline and loop:NUMBER compare with a snapshot of a loop: of its beginning, or after an iteration.\n\n" +
			"Only findings in the given files and folders are told, but all changed files are read: a test that moved is " +
			"found again. " +
			"The exit status is 3 when a finding acts (verdict BLOCK), 0 for warnings and hints. --json prints the report " +
			"(schema " +
			"check-report), --sarif the same as SARIF 2.1.0.",
		Example: "perdure check\n perdure check --staged\n perdure check --base origin/main --sarif >perdure.sarif\n" +
			" perdure check patterns",
		GroupID: env.GroupInspect,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.check(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "compare with this `revision`, with A..B or A...B, or with a loop's snapshot "+
		"(default: the last commit)")
	f.StringVar(&o.loop, "loop", "", "the `loop` that --base loop:… means (default: the one that has not ended, or "+
		"else the latest)")
	f.StringVar(&o.mode, "mode", "", "which findings act: off, minimal, standard, aggressive (default: loop.detection "+
		"of the settings)")
	f.BoolVar(&o.staged, "staged", false, "look at what is staged, not at the files as they are")
	env.JSONFlag(cmd, &o.json)
	f.BoolVar(&o.sarif, "sarif", false, "print SARIF 2.1.0 for programs that show findings beside the code")
	cmd.MarkFlagsMutuallyExclusive("json", "sarif")
	cmd.AddCommand(c.newPatternsCommand())
	return cmd
}

// check looks, and tells what it found.
func (c *commands) check(cmd *cobra.Command, o *options, paths []string) error {
	ctx := cmd.Context()
	l, err := c.Load(cmd)
	if err != nil {
		return err
	}
	if modes := []detect.Mode{"", detect.Off, detect.Minimal, detect.Standard, detect.Aggressive}; !slices.Contains(modes, detect.Mode(o.mode)) || o.mode == "" && cmd.Flags().Changed("mode") {
		return &perdure.Error{Code: perdure.CodeInvalid,
			Msg: fmt.Sprintf("--mode %q is none of off, minimal, standard, aggressive", o.mode)}
	}
	if o.base == "" && cmd.Flags().Changed("base") { // a variable that is not set would look at nothing
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: "--base names no revision",
			Hint: "a variable may be empty; without --base the files are compared with the last commit"}
	}
	v, err := c.compared(ctx, l, o)
	if err != nil {
		return err
	}
	s, err := c.settings(ctx, l, v, detect.Mode(o.mode))
	if err != nil {
		return err
	}
	out, err := v.look(ctx, c, s, paths)
	if err != nil {
		return err
	}
	switch {
	case o.json:
		err = c.PrintJSON(out)
	case o.sarif:
		err = c.PrintJSON(sarif(out, env.ThisBuild().Version))
	default:
		c.text(out)
	}
	if err != nil {
		return err
	}
	if out.Verdict == detect.Block {
		return &env.Exit{Status: env.StatusIncomplete}
	}
	return nil
}

// loopBase is what follows loop: in a base; false for a revision.
func loopBase(base string) (string, bool) {
	if base == "loop" {
		return "baseline", true
	}
	return strings.CutPrefix(base, "loop:")
}
