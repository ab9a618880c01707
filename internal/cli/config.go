package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
)

// load reads the settings: flags the user gave, environment, file, defaults.
func (a *app) load(cmd *cobra.Command) (*config.Loaded, error) { return a.loadFrom(cmd, a.env.Cwd) }

// loadFrom is load as it were in another folder.
func (a *app) loadFrom(cmd *cobra.Command, dir string) (*config.Loaded, error) {
	flags := make(map[string]string)
	for _, key := range config.Keys() {
		if f := cmd.Flags().Lookup(key.Flag); f != nil && f.Changed {
			flags[key.Name] = f.Value.String()
		}
	}
	l, err := config.Load(config.Sources{Dir: dir, Environ: a.env.Environ, Flags: flags})
	if err != nil {
		return nil, err
	}
	for _, warning := range l.Warnings {
		a.note("warning: %s", warning)
	}
	return l, nil
}

// settingFlags adds flags for settings; their values are checked by load with
// all others.
func settingFlags(cmd *cobra.Command, keys ...string) {
	for _, key := range config.Keys() {
		if slices.Contains(keys, key.Name) {
			settingFlag(cmd, key)
		}
	}
}

func settingFlag(cmd *cobra.Command, key config.Key) {
	flag := cmd.Flags().VarPF(&settingValue{text: key.Default}, key.Flag, "", key.Help)
	if key.Truth {
		flag.NoOptDefVal = "true" // --cache alone says yes
	}
}

// settingValue is the text of a setting's flag.
type settingValue struct{ text string }

// String returns the text.
func (v *settingValue) String() string { return v.text }

// Set takes any text.
func (v *settingValue) Set(text string) error {
	v.text = text
	return nil
}

// Type is shown behind the flag in the help.
func (v *settingValue) Type() string { return "value" }

// effective is the output of perdure config --json.
type effective struct {
	Dir      config.Setting   `json:"dir"`
	File     string           `json:"file,omitempty"`
	Settings []config.Setting `json:"settings"`
}

func (a *app) newConfigCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting, its value and where it came from",
		Long: "Print every setting with its value and where that came from: a flag wins over the environment " +
			"(PERDURE_…), that over .perdure/config.yaml, and that over the built-in default.",
		GroupID: groupManage,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(effective{Dir: l.Folder(), File: l.File, Settings: l.Effective()})
			}
			a.printConfig(append([]config.Setting{l.Folder()}, l.Effective()...))
			return nil
		},
	}
	env.JSONFlag(cmd, &asJSON)
	for _, key := range config.Keys() {
		settingFlag(cmd, key)
	}
	return cmd
}

func (a *app) printConfig(settings []config.Setting) {
	keyWidth, textWidth := 0, 0
	for _, s := range settings {
		keyWidth = max(keyWidth, cells(s.Key))
		if s.Key != "dir" {
			textWidth = max(textWidth, cells(s.Text))
		}
	}
	for _, s := range settings {
		text, where := s.Text, s.Where
		if text == "" {
			text = "-"
		}
		if where == "" {
			where = s.Origin
		}
		a.printf("%s  %s  %s\n", a.out.bold(pad(s.Key, keyWidth)), pad(a.out.safe(text), min(textWidth, 40)),
			a.out.dim(a.out.safe(where)))
	}
}
