package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
)

// effective is the output of config --json.
type effective struct {
	Dir      config.Setting   `json:"dir"`
	File     string           `json:"file,omitempty"`
	Settings []config.Setting `json:"settings"`
}

func (a *app) newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print all settings with their origins",
		Long: "Print all settings with their effective values and origins. Flags override the environment (PERDURE_…), " +
			"which overrides .perdure/config.yaml, which overrides the defaults.\n\nOnly the file has these sections:\n\n" +
			strings.TrimSpace(sections()),
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			return a.Print(effective{Dir: l.Folder(), File: l.File, Settings: l.Effective()}, func() {
				a.printConfig(append([]config.Setting{l.Folder()}, l.Effective()...))
			})
		},
	}
	a.JSONFlag(cmd)
	for _, key := range config.Keys() {
		env.SettingFlag(cmd, key)
	}
	cmd.AddCommand(a.newConfigKeysCommand())
	return cmd
}

// describedKey is a key of the settings file in the output of config keys --json.
type describedKey struct {
	Key     string `json:"key"`
	Help    string `json:"help"`
	Default string `json:"default,omitempty"`
	// Variable is the environment variable, empty for keys that only the file has.
	Variable string `json:"variable,omitempty"`
}

// newConfigKeysCommand returns the command that describes the keys. It reads no file, because
// the user of a file with an error needs it.
func (a *app) newConfigKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Describe all keys of the settings file",
		Long: "Print a settings file with all keys, what they mean, and their defaults, as `perdure init` writes it. It " +
			"works also if the settings of this folder have an error. --json prints a list of the keys.",
		Example: "perdure config keys | grep -B1 budget",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			var keys []describedKey
			for _, k := range config.Keys() {
				keys = append(keys, describedKey{Key: k.Name, Help: k.Help, Default: k.Default, Variable: k.Variable})
			}
			for _, s := range config.Sections() {
				keys = append(keys, describedKey{Key: s.Key, Help: s.Help})
			}
			return a.Print(keys, func() { a.Printf("%s", config.Template()) })
		},
	}
	a.JSONFlag(cmd)
	return cmd
}

// sections returns a line for each section that only the file has.
func sections() string {
	var b strings.Builder
	for _, s := range config.Sections() {
		fmt.Fprintf(&b, "- %s: %s\n", s.Key, s.Help)
	}
	return b.String()
}

func (a *app) printConfig(settings []config.Setting) {
	keyWidth, textWidth := 0, 0
	for _, s := range settings {
		keyWidth = max(keyWidth, env.Width(s.Key))
		if s.Key != "dir" {
			textWidth = max(textWidth, env.Width(s.Text))
		}
	}
	for _, s := range settings {
		text := env.Pad(a.Out.Safe(cmp.Or(s.Text, "-")), min(textWidth, 40))
		where := a.Out.Dim(a.Out.Safe(cmp.Or(s.Where, s.Origin)))
		a.Printf("%s  %s  %s\n", a.Out.Bold(env.Pad(s.Key, keyWidth)), text, where)
	}
}
