package pipe

import (
	"context"
	"errors"
	"os"
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
	// Unsandboxed lets it run if no sandbox can be made.
	Unsandboxed bool
}

// StartConfined starts the process in a sandbox, with a folder of its own as the working folder.
// Without a sandbox it refuses with KindUnsandboxed, unless c says otherwise.
func StartConfined(ctx context.Context, cfg Config, c Confinement) (engine.Session, error) {
	place, err := newScratch()
	if err != nil {
		return nil, err
	}
	cfg.Closed = place.remove
	cfg.Command.Dir, cfg.Command.Hold = place.work, []*os.File{place.lock}
	cfg.Command.Sandbox = &sandbox.Config{HiddenReadOnly: true, OwnProcesses: true,
		Confine:  &sandbox.Confine{Programs: programs()},
		Writable: []string{place.work}, Temp: place.dir, Readable: c.Readable, Hidden: append(private(), c.Hidden...)}
	s, err := Start(ctx, cfg)
	refused, ok := errors.AsType[*sandbox.Error](err)
	switch {
	case ok && c.Unsandboxed:
		cfg.Command.Sandbox = nil
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

// programs are the folders at the top of the file system with programs and libraries.
func programs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix"}
}

// private are the folders that the code must not read: all at the top of the file system but
// those with programs and libraries. The sandbox itself has other folders /tmp, /dev and /run.
func private() []string {
	shared := append(programs(), "/proc", "/tmp", "/dev", "/run")
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
