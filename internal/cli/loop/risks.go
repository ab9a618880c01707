package loop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

func (c *commands) newRisksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "risks [COMMAND]",
		Short: "Show the table of risky tool calls, or check a command line",
		Long: "Show the table of risky tool calls. Agents that ask before a tool call get its answer: allow, warn, gate " +
			"(the user decides) or block. With a command line, show its risks in the current folder, judged as a hook judges " +
			"it. The setting loop.risks overrides answers, and loop.risks.commands adds commands to destroy_external: " +
			"\"make db-wipe\": gate.",
		Example: "perdure loop risks\n perdure loop risks 'cd src && git checkout -- .'",
		Args:    env.Arguments(0, 1, "at most one command line"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.Load(cmd)
			if err != nil {
				return err
			}
			if !l.Loop.Enabled {
				c.Note("loop.enabled is false: hooks and loops let every call pass")
			}
			if len(args) == 0 {
				return c.showRisks(l.Loop.Risks)
			}
			p, err := policy.Outside(c.Cwd, l.Dir, l.Loop.Risks)
			if err != nil {
				return err
			}
			j := p.Judge(&agent.ToolCall{Kind: agent.ToolExecute, Command: args[0]}, c.Cwd)
			return c.showFindings(j.Findings)
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) showRisks(set map[risk.Pattern]risk.Answer) error {
	table := risk.Table()
	for i := range table {
		table[i].Answer = cmp.Or(set[table[i].Pattern], table[i].Answer)
	}
	commands := slices.DeleteFunc(slices.Sorted(maps.Keys(set)), func(key risk.Pattern) bool {
		return !strings.HasPrefix(string(key), risk.CommandPrefix)
	})
	for _, key := range commands {
		table = append(table, risk.Rule{Pattern: key, Level: risk.Critical, Answer: set[key], Destructive: true,
			What: "a command of the setting loop.risks.commands"})
	}
	return c.Print(table, func() {
		lines := make([]string, len(table))
		for i, r := range table {
			lines[i] = fmt.Sprintf("%s\t%s\t%s\t%s", r.Pattern, r.Level, r.Answer, r.What)
		}
		c.PrintTable(lines)
	})
}

func (c *commands) showFindings(found []risk.Finding) error {
	return c.Print(append([]risk.Finding{}, found...), func() {
		if len(found) == 0 {
			c.Printf("nothing risky\n")
		}
		for _, f := range found {
			c.Printf("%s (%s): %s\n", f.Answer, f.Level, c.Out.Safe(f.What+": "+f.Target))
		}
	})
}
