package check

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
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
		Long: "List the patterns that are looked for: by their names, with the type, the tier of evidence, the severity, " +
			"what a sure finding " +
			"does in the mode that is set (act, warn, tell, or off), and the families of public catalogues that they cover. " +
			"Settings and " +
			"waivers name patterns by either.",
		Example: "perdure check patterns\n perdure check patterns --json",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.Load(cmd)
			if err != nil {
				return err
			}
			entries, err := c.catalog(cmd.Context(), l)
			if err != nil {
				return err
			}
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
				if _, err := fmt.Fprintf(w, "%s\t%s\ttier %d\t%s\t%s\t%s\t%s\n", e.ID, e.Type, e.Tier, e.Severity, does,
					strings.Join(e.Aliases, " "), c.Out.Safe(e.Title)); err != nil {
					return err
				}
			}
			return w.Flush()
		},
	}
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// catalog is the table as the settings have it: the user's, and the project's of the
// last commit where there is one.
func (c *commands) catalog(ctx context.Context, l *config.Loaded) ([]Entry, error) {
	v, err := c.fromGit(ctx, &options{})
	if err != nil { // no repository, and so no file of a project
		v = &versions{root: c.Cwd, trusted: func(context.Context, string) ([]byte, error) { return nil, nil }}
	}
	s, err := c.settings(ctx, l, v, "")
	if err != nil {
		return nil, err
	}
	var entries []Entry
	builtIn := len(detect.Catalog())
	for i, p := range s.set.Catalog() {
		action := s.rules.Action(p.ID)
		if action == "" {
			action = actionOf(p.Tier, s.mode)
		}
		entries = append(entries, Entry{Pattern: p, On: s.mode != detect.Off && s.rules.On(p.ID), Action: action,
			Custom: i >= builtIn})
	}
	for _, note := range s.notes {
		c.Note("%s", note)
	}
	return entries, nil
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
