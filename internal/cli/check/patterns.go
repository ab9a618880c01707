package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/detect"
)

// Entry is a pattern of the catalog with its settings.
type Entry struct {
	detect.Pattern
	On bool `json:"on"`
	// Action is the action of a certain finding in the mode.
	Action detect.Action `json:"action"`
	Custom bool          `json:"custom,omitempty"`
}

func (c *commands) newPatternsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "patterns",
		Short: "List the patterns of regressions",
		Long: "List the patterns by name, with type, tier of evidence, severity, the action of a certain finding in the " +
			"current mode (act: block, warn, tell: list, or off), and the families of public catalogs that they cover. " +
			"Settings and waivers accept both names.",
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
			return c.Print(entries, func() {
				lines := make([]string, len(entries))
				for i, e := range entries {
					action := e.Action
					if !e.On {
						action = "off"
					}
					lines[i] = fmt.Sprintf("%s\t%s\ttier %d\t%s\t%s\t%s\t%s", e.ID, e.Type, e.Tier, e.Severity, action,
						strings.Join(e.Aliases, " "), c.Out.Safe(e.Title))
				}
				c.PrintTable(lines)
			})
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

// catalog returns the patterns with the settings of the user, and of the project's last
// commit if there is one.
func (c *commands) catalog(ctx context.Context, l *config.Loaded) ([]Entry, error) {
	v, err := c.fromGit(ctx, &options{})
	if err != nil { // no repository, so no project's file
		v = &versions{root: c.Cwd, trusted: func(context.Context, string) ([]byte, error) { return nil, nil }}
	}
	s, err := c.settings(ctx, l, v, "")
	if err != nil {
		return nil, err
	}
	var entries []Entry
	builtIn := len(detect.Catalog())
	for i, p := range s.set.Catalog() {
		action := cmp.Or(s.rules.Action(p.ID), actionOf(p.Tier, s.mode))
		entries = append(entries, Entry{Pattern: p, On: s.mode != detect.Off && s.rules.On(p.ID), Action: action,
			Custom: i >= builtIn})
	}
	for _, note := range s.notes {
		c.Note("%s", note)
	}
	return entries, nil
}

// actionOf returns the action of a certain finding of a tier.
func actionOf(t detect.Tier, mode detect.Mode) detect.Action {
	switch {
	case t == detect.Fact, t == detect.Sign && mode != detect.Minimal:
		return detect.Act
	case t == detect.Sign, mode == detect.Aggressive:
		return detect.Warn
	}
	return detect.Tell
}
