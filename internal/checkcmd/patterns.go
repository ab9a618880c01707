package checkcmd

import (
	"strings"
	"text/tabwriter"

	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/detect"
)

// Entry is a pattern of the catalog, as it is set.
type Entry struct {
	detect.Pattern
	On bool `json:"on"`
	// Action is what a sure finding does in the mode.
	Action detect.Action `json:"action"`
	Custom bool          `json:"custom,omitempty"`
}

// newPatternsCommand lists what is looked for.
func (c *commands) newPatternsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "patterns",
		Short: "List what is looked for, and what it counts for",
		Long: "List the patterns that are looked for: by their names, with the type, the tier of evidence, the severity, what a sure finding " +
			"does in the mode that is set (act, warn, tell, or off), and the families of public catalogues that they cover. Settings and " +
			"waivers name patterns by either.",
		Example: "perdure check patterns\n perdure check patterns --json",
		Args:    c.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.Load(cmd)
			if err != nil {
				return err
			}
			entries := catalog(detect.Mode(l.Loop.Detection))
			if asJSON {
				return c.PrintJSON(entries)
			}
			w := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
			for i := range entries {
				e := &entries[i]
				does := string(e.Action)
				if !e.On {
					does = "off"
				}
				if _, err := fmt.Fprintf(w, "%s\t%s\ttier %d\t%s\t%s\t%s\t%s\n", e.ID, e.Type, e.Tier, e.Severity, does, strings.Join(e.Aliases, " "), c.Safe(e.Title)); err != nil {
					return err
				}
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs")
	return cmd
}

// catalog is the table as a mode has it.
func catalog(mode detect.Mode) []Entry {
	var entries []Entry
	for _, p := range detect.Catalog() {
		entries = append(entries, Entry{Pattern: p, On: mode != detect.Off, Action: actionOf(p.Tier, mode)})
	}
	return entries
}

// actionOf is what a sure finding of a tier does.
func actionOf(t detect.Tier, mode detect.Mode) detect.Action {
	switch {
	case t == detect.Fact, t == detect.Sign && mode != detect.Minimal:
		return detect.Act
	case t == detect.Sign, mode == detect.Aggressive:
		return detect.Warn
	}
	return detect.Tell
}
