package pipe

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// Confinement is what a confined process can reach besides programs, libraries and its own
// folder.
type Confinement struct {
	// Readable are files and folders that it reads, Hidden those that it must not read, such as
	// the folder of the store.
	Readable, Hidden []string
	// Executed are further files that it executes when it starts.
	Executed []string
	// Unsandboxed lets it run if no sandbox can be made.
	Unsandboxed bool
	// Checked is set if the process makes the attempts of [Config.Attempts] before it is ready.
	Checked bool
}

// StartConfined starts the process in a sandbox, with a folder of its own as the working folder.
// Without a sandbox it refuses with KindUnsandboxed, unless c says otherwise.
func StartConfined(ctx context.Context, cfg Config, c Confinement) (engine.Session, error) {
	place, err := newScratch()
	if err != nil {
		return nil, err
	}
	cfg.Closed, cfg.Folder = place.remove, place.dir
	cfg.Command.Dir, cfg.Command.Hold = place.work, []*os.File{place.lock}
	s, err := c.start(ctx, cfg, place)
	refused, ok := errors.AsType[*sandbox.Error](err)
	switch {
	case ok && c.Unsandboxed:
		s, err = Start(ctx, cfg)
	case ok:
		err = &engine.Error{Kind: engine.KindUnsandboxed, Err: refused,
			Msg: "no sandbox for the code of the model could be made",
			Hint: "run it on Linux with user namespaces, or with Linux 6.12 or later, or allow code without a sandbox " +
				"in as many words (--repl-unsandboxed)"}
	}
	if err != nil {
		return nil, errors.Join(err, place.remove())
	}
	return s, nil
}

// start starts the process in a sandbox, and checks that it holds.
func (c *Confinement) start(ctx context.Context, cfg Config, place *scratch) (engine.Session, error) {
	readable := programs(runtime.GOOS)
	cfg.Command.Sandbox = &sandbox.Config{HiddenReadOnly: true, OwnProcesses: true,
		Confine:  &sandbox.Confine{Programs: readable, Executed: c.Executed},
		Writable: []string{place.work}, Temp: place.dir, Readable: c.Readable,
		Hidden: append(private(runtime.GOOS), c.Hidden...)}
	if c.Checked {
		t, err := newTargets(ctx, place.dir, c.Hidden, append(readable, c.Readable...))
		if err != nil {
			return nil, err
		}
		defer t.close()
		cfg.Attempts = t.attempts
	}
	s, err := Start(ctx, cfg)
	if err == nil && !c.Checked && slices.Contains(s.Sandbox().Layers, sandbox.LayerSandboxExec) {
		return nil, errors.Join(&sandbox.Error{Op: "check sandbox", Err: errUnchecked}, s.Close())
	}
	return s, err
}

// errUnchecked is the cause of a refusal of a sandbox that only its check makes trustworthy.
var errUnchecked = errors.New("on this system only Python is checked before it runs code")

// programs are the folders with programs and libraries of a system; those that do not exist are
// ignored. Those of macOS are of its package managers; the sandbox adds the system's own.
func programs(system string) []string {
	if system == "darwin" {
		return []string{"/opt/homebrew/Cellar", "/opt/homebrew/opt", "/opt/homebrew/lib", "/opt/homebrew/Frameworks",
			"/usr/local/Cellar", "/usr/local/opt", "/usr/local/lib", "/usr/local/Frameworks",
			"/opt/local/lib", "/opt/local/Library/Frameworks", "/nix/store"}
	}
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix"}
}

// private are the folders that the code must not read: all at the top of the file system but
// those with programs and libraries. The sandbox itself has other folders /tmp, /dev and /run; that
// of macOS lets read nothing but what it names.
func private(system string) []string {
	if system == "darwin" {
		return nil
	}
	shared := append(programs(system), "/proc", "/tmp", "/dev", "/run")
	entries, err := os.ReadDir("/")
	if err != nil {
		return []string{"/etc", "/root", "/home", "/var", "/srv", "/mnt", "/media", "/opt", "/sys"}
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(shared, "/"+e.Name()) {
			dirs = append(dirs, "/"+e.Name())
		}
	}
	return dirs
}
