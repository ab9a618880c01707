package loop

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/loop/config"
)

func (c *commands) newRisksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "risks [COMMAND]",
		Short: "Show the table of risky tool calls, or check a command line",
		Long: "Show the table of risky tool calls. Agents that ask before a tool call get its answer: allow, warn, gate " +
			"(the user decides) or block. With a command line, show its risks in the current folder. The setting " +
			"loop.risks overrides answers.",
		Example: "perdure loop risks\n perdure loop risks 'cd src && git checkout -- .'",
		Args:    env.Arguments(0, 1, "at most one command line"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := c.settings(cmd, "")
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return c.showRisks(set.RiskAnswers)
			}
			root, err := filepath.EvalSymlinks(c.Cwd)
			if err != nil {
				return err
			}
			found := risk.Assess(&agent.ToolCall{Kind: agent.ToolExecute, Command: args[0]}, risk.Where{Root: root})
			return c.showFindings(found, set.RiskAnswers)
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) showRisks(set map[string]config.RiskAnswer) error {
	table := risk.Table()
	for i := range table {
		table[i].Answer = cmp.Or(risk.Answer(set[string(table[i].Pattern)]), table[i].Answer)
	}
	return c.Print(table, func() {
		lines := make([]string, len(table))
		for i, r := range table {
			lines[i] = fmt.Sprintf("%s\t%s\t%s\t%s", r.Pattern, r.Level, r.Answer, r.What)
		}
		c.PrintTable(lines)
	})
}

func (c *commands) showFindings(found []risk.Finding, set map[string]config.RiskAnswer) error {
	for i := range found {
		found[i].Answer = cmp.Or(risk.Answer(set[string(found[i].Pattern)]), found[i].Answer)
	}
	return c.Print(append([]risk.Finding{}, found...), func() {
		if len(found) == 0 {
			c.Printf("nothing risky\n")
		}
		for _, f := range found {
			c.Printf("%s (%s): %s\n", f.Answer, f.Level, c.Out.Safe(f.What+": "+f.Target))
		}
	})
}
