// Package check implements the command check: it finds regressions between two
// versions of the files without a loop, before a commit or in CI. Package gitdiff
// reads the versions, package detect compares them.
package check

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/detect"
)

type commands struct{ *env.Env }

// options are the flags of the command.
type options struct {
	base, loop, mode string
	staged, sarif    bool
}

// Command returns the command with its subcommand.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var o options
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Find deleted tests, weakened checks and suppressed errors",
		Long: "Compare two versions of the files and report regressions: deleted or skipped tests, weakened assertions, " +
			"removed validation and error handling, suppressed warnings, stubbed features, changed configuration of checks. " +
			"Loops use the same detection; this command needs no loop and no store.\n\n" +
			"By default the working tree, including untracked files, is compared with HEAD. --staged compares the index, for " +
			"a pre-commit hook. --base REV compares with the merge base of REV and HEAD, as reviews do; --base A..B compares " +
			"two commits, --base A...B compares B with the merge base. --base loop:baseline and loop:NUMBER compare with the " +
			"snapshot of a loop's start, or after an iteration.\n\n" +
			"PATH limits the reported findings, but all changed files are read, so that moved tests are recognized. The exit " +
			"status is 3 if a finding blocks (verdict BLOCK). --json prints the report (schema check-report), --sarif the " +
			"same as SARIF 2.1.0.",
		Example: "perdure check\n perdure check --staged\n perdure check --base origin/main --sarif >perdure.sarif\n" +
			" perdure check patterns",
		GroupID: env.GroupInspect,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.check(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.base, "base", "", "`REV` version to compare with: a revision, A..B, A...B, loop:baseline or "+
		"loop:NUMBER; default: HEAD")
	f.StringVar(&o.loop, "loop", "", "`LOOP` loop of --base loop:…; default: the one that has not ended, or else the "+
		"newest")
	f.StringVar(&o.mode, "mode", "", "`MODE` which findings block: off, minimal, standard or aggressive; default: the "+
		"setting loop.detection")
	f.BoolVar(&o.staged, "staged", false, "compare the index instead of the working tree")
	c.JSONFlag(cmd)
	f.BoolVar(&o.sarif, "sarif", false, "print SARIF 2.1.0")
	cmd.MarkFlagsMutuallyExclusive("json", "sarif")
	cmd.AddCommand(c.newPatternsCommand())
	return cmd
}

// check compares the versions and prints the report.
func (c *commands) check(cmd *cobra.Command, o *options, paths []string) error {
	ctx := cmd.Context()
	l, err := c.Load(cmd)
	if err != nil {
		return err
	}
	modes := []string{string(detect.Off), string(detect.Minimal), string(detect.Standard), string(detect.Aggressive)}
	if cmd.Flags().Changed("mode") && !slices.Contains(modes, o.mode) {
		return env.Unknown("mode", o.mode, modes)
	}
	if o.base == "" && cmd.Flags().Changed("base") { // a variable of a script can be unset
		return env.UsageError("write a revision, or omit --base to compare with HEAD", "--base is empty")
	}
	v, err := c.compared(ctx, l, o)
	if err != nil {
		return err
	}
	s, err := c.settings(ctx, l, v, detect.Mode(o.mode))
	if err != nil {
		return err
	}
	out, err := v.report(ctx, c, s, paths)
	if err != nil {
		return err
	}
	if o.sarif {
		err = c.PrintJSON(sarif(out, env.ThisBuild().Version))
	} else {
		err = c.Print(out, func() { c.text(out) })
	}
	if err == nil && out.Verdict == detect.Block {
		return &env.Exit{Status: env.StatusIncomplete}
	}
	return err
}

// loopBase returns the snapshot of a base loop:SNAPSHOT, and false for a revision.
func loopBase(base string) (string, bool) {
	if base == "loop" {
		return "baseline", true
	}
	return strings.CutPrefix(base, "loop:")
}
