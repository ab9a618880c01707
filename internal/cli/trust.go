package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config/trust"
)

func (a *app) newTrustCommand() *cobra.Command {
	var list, show, remove bool
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Trust the settings and the store of this folder",
		Long: "Print the settings of .perdure/config.yaml and the stored trees that run programs, connect, redirect " +
			"requests or permit tool calls, and trust them. Until then commands that would use them ask or fail, and the " +
			"others ignore them, because they can come with a repository. A change of these settings or another store " +
			"file asks again. Settings by flag and environment variable need no trust, and neither does a store that " +
			"perdure created in this folder.\n\n" +
			"The record is outside of the folder, in perdure/trust in the user's configuration folder. PERDURE_TRUST=1 " +
			"trusts the folder for one process, --trust for one command. If it cannot be written, a run that acts " +
			"says so at once.\n\n" +
			"If you trusted other settings before, those that are new or changed are marked. --json prints one object, " +
			"also with --show: dir, trusted, settings (key, value, effect, overridden if a flag or variable overrides it " +
			"now, change if the user trusted others before), trees (tree_id, effect; at most 20) and tree_count. settings and " +
			"trees are what was not trusted before the command; trusted reports whether they are now.",
		Example: "perdure trust --show\n perdure trust\n perdure trust --remove",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case list:
				return a.listTrusted()
			case remove:
				return a.removeTrust(cmd)
			}
			return a.trust(cmd, show)
		},
	}
	cmd.Flags().BoolVar(&show, "show", false, "print what is not trusted yet, and change nothing")
	cmd.Flags().BoolVar(&list, "list", false, "list the trusted folders")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the record of this folder")
	cmd.MarkFlagsMutuallyExclusive("show", "list", "remove")
	a.JSONFlag(cmd)
	return cmd
}

// trust prints what acts in the folder and is not trusted, and trusts it unless only is set.
func (a *app) trust(cmd *cobra.Command, only bool) error {
	l, err := a.LoadUntrusted(cmd, a.Cwd)
	if err != nil {
		return err
	}
	if !l.Exists {
		return env.NotFound("`perdure init` creates one", "no .perdure folder in %s or above it", a.Cwd)
	}
	u, err := a.Untrusted(cmd.Context(), l, true)
	if err == nil && !only {
		err = a.TrustFolder(l)
	}
	if err != nil {
		return err
	}
	u.Trusted = !only || len(u.Lines()) == 0
	return a.Print(&u, func() {
		for _, line := range u.Lines() {
			a.Printf("%s\n", a.Out.Safe(line))
		}
		switch {
		case !only:
			a.Note("%s is trusted", l.Dir)
		case len(u.Lines()) == 0:
			a.Note("nothing in %s needs trust", l.Dir)
		}
	})
}

func (a *app) removeTrust(cmd *cobra.Command) error {
	l, err := a.LoadUntrusted(cmd, a.Cwd)
	if err != nil {
		return err
	}
	records, err := trust.Open(a.Getenv)
	if err != nil {
		return unreadableTrust(err)
	}
	removed, err := records.Remove(l.Dir)
	if err != nil {
		return unreadableTrust(err)
	}
	if !removed {
		return env.NotFound("`perdure trust --list` lists the trusted folders", "%s has no trust record", l.Dir)
	}
	return a.Print(map[string]any{"removed": l.Dir}, func() { a.Note("%s is no longer trusted", l.Dir) })
}

func (a *app) listTrusted() error {
	records, err := trust.Open(a.Getenv)
	if err != nil {
		return unreadableTrust(err)
	}
	all, err := records.List()
	if err != nil {
		return unreadableTrust(err)
	}
	return a.Print(append([]trust.Record{}, all...), func() {
		for _, r := range all {
			a.Printf("%s  %s\n", r.At.Local().Format(time.DateTime), a.Out.Safe(r.Dir))
		}
	})
}

func unreadableTrust(err error) error {
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: "read trust records", Err: err,
		Hint: "check the permissions of the configuration folder, or set XDG_CONFIG_HOME"}
}
