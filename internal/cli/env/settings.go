package env

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/config"
)

// Load reads the settings: flags, environment, file and defaults. Settings of the file that
// act are used only if the user trusts the folder; see [UsesActing].
func (e *Env) Load(cmd *cobra.Command) (*config.Loaded, error) { return e.LoadFrom(cmd, e.Cwd) }

// LoadFrom reads the settings as [Env.Load] does in the folder dir.
func (e *Env) LoadFrom(cmd *cobra.Command, dir string) (*config.Loaded, error) {
	l, err := e.LoadUntrusted(cmd, dir)
	if err == nil {
		err = e.applyTrust(cmd, l)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// LoadUntrusted reads the settings as [Env.LoadFrom] does, and does not ask whether the
// user trusts the folder. The caller must not act on them.
func (e *Env) LoadUntrusted(cmd *cobra.Command, dir string) (*config.Loaded, error) {
	flags := make(map[string]string)
	for _, key := range config.Keys() {
		f := cmd.Flags().Lookup(key.Flag)
		if f == nil || !isChanged(f) {
			continue
		}
		if err := checkBudget(f); err != nil {
			return nil, err
		}
		flags[key.Name] = f.Value.String()
	}
	l, err := config.Load(config.Sources{Dir: dir, Environ: e.Environ, Flags: flags})
	if err != nil {
		return nil, err
	}
	for _, warning := range l.Warnings {
		e.Note("warning: %s", warning)
	}
	return l, nil
}

// checkBudget returns an error for a budget of 0, which would allow no model call.
func checkBudget(f *pflag.Flag) error {
	x, err := strconv.ParseFloat(f.Value.String(), 64)
	if !strings.HasPrefix(f.Name, "budget-") || err != nil || x != 0 {
		return nil
	}
	hint := "write a number above 0, or omit --" + f.Name
	if _, ok := f.Value.(*settingValue); ok {
		hint = "write a number above 0, or none for no limit"
	}
	return UsageError(hint, "--%s is %s; a budget has to be above 0", f.Name, f.Value)
}

// Root returns the project's folder, in which the programs of a run start and to which
// paths in the settings file are relative.
func (e *Env) Root(l *config.Loaded) string {
	if filepath.Base(l.Dir) == config.FolderName {
		return filepath.Dir(l.Dir)
	}
	return e.Cwd
}

// settingPath returns the absolute path of a path in the settings file, or "" for "".
func (e *Env) settingPath(l *config.Loaded, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.Root(l), path)
}

// SocketPath returns the path of the daemon's socket.
func SocketPath(l *config.Loaded) string {
	if filepath.IsAbs(l.Socket) {
		return l.Socket
	}
	return filepath.Join(l.Dir, cmp.Or(l.Socket, "perdure.sock"))
}

// CacheDir returns the folder of cached answers.
func CacheDir(l *config.Loaded) string { return filepath.Join(l.Dir, "cache") }

// LoopDir returns the folder in which loops keep their snapshots.
func LoopDir(l *config.Loaded) string { return filepath.Join(l.Dir, "loops") }

// HandoffDir returns the folder of the handoffs' snapshots.
func HandoffDir(l *config.Loaded) string { return filepath.Join(l.Dir, "handoffs") }

// HandoffFolder returns the folder that handoff files are relative to, or "" if
// the store is shared, so that other folders use it too.
func HandoffFolder(l *config.Loaded) string {
	if l.Store != "" {
		return ""
	}
	return filepath.Dir(l.Dir)
}

// Thresholds returns the parts of an agent's context at which it hands over.
func Thresholds(l *config.Loaded) ledger.Thresholds {
	return ledger.Thresholds{Warn: float64(l.HandoffWarnPercent) / 100, Stop: float64(l.HandoffStopPercent) / 100}
}

// HasStore reports whether the project has a store.
func HasStore(l *config.Loaded) bool {
	if l.Store != "" {
		return true
	}
	for _, name := range []string{"perdure.db", "perdure.db-wal"} { // a log alone is a damaged store
		if _, err := os.Stat(filepath.Join(l.Dir, name)); err == nil {
			return true
		}
	}
	return false
}
