package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
)

// build says what program this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Time is that of the revision, RFC 3339.
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	System   string `json:"system"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (a *app) newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		GroupID: groupManage,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return a.printJSON(b)
			}
			a.printf("perdure %s", b.Version)
			if len(b.Revision) >= 12 {
				a.printf(" (%s)", b.Revision[:12])
			}
			a.printf(" %s %s\n", b.Go, b.System)
			return nil
		},
	}
	env.JSONFlag(cmd, &asJSON)
	return cmd
}
