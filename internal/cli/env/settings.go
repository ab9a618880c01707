package env

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/config"
)

// Load reads the settings: flags, environment, file and defaults.
func (e *Env) Load(cmd *cobra.Command) (*config.Loaded, error) { return e.LoadFrom(cmd, e.Cwd) }

// LoadFrom reads the settings as [Env.Load] does in the folder dir.
func (e *Env) LoadFrom(cmd *cobra.Command, dir string) (*config.Loaded, error) {
	flags := make(map[string]string)
	for _, key := range config.Keys() {
		if f := cmd.Flags().Lookup(key.Flag); f != nil && f.Changed {
			flags[key.Name] = f.Value.String()
		}
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

// Root returns the project's folder. Programs of a run start in it, and relative
// paths in the settings file count from it.
func (e *Env) Root(l *config.Loaded) string {
	if filepath.Base(l.Dir) == config.FolderName {
		return filepath.Dir(l.Dir)
	}
	return e.Cwd
}

// settingPath returns a path of the settings file as an absolute path; "" stays "".
func (e *Env) settingPath(l *config.Loaded, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.Root(l), path)
}

// SocketPath returns the path of the daemon's socket.
func SocketPath(l *config.Loaded) string {
	if l.Socket == "" {
		return filepath.Join(l.Dir, "perdure.sock")
	}
	if filepath.IsAbs(l.Socket) {
		return l.Socket
	}
	return filepath.Join(l.Dir, l.Socket)
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

// NoStore returns the error for a project without a store.
func NoStore(l *config.Loaded) error {
	return &perdure.Error{Code: perdure.CodeNotFound, Op: "open store", Msg: "no store in " + l.Dir,
		Hint: "`perdure run` creates one; change to the project's folder, or set PERDURE_DIR"}
}
