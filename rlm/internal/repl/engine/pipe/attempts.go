package pipe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// Attempt is something that a confined process must not be able to do.
type Attempt struct {
	// Name says what it does: "read a file outside".
	Name string `json:"name"`
	// Kind selects what is tried, Path and Port are its target.
	Kind string `json:"kind"`
	Path string `json:"path,omitempty"`
	Port int    `json:"port,omitempty"`
}

// Kinds of attempts.
const (
	kindRead        = "read"
	kindWrite       = "write"
	kindCreate      = "create"
	kindLink        = "link"
	kindConnect     = "connect"
	kindDial        = "dial"
	kindSignal      = "signal"
	kindEnvironment = "environment"
	kindFork        = "fork"
	kindRun         = "run"
)

// Outcome is what came of an attempt.
type Outcome struct {
	Name string `json:"name"`
	// Errno is the number of the error, 0 if the attempt worked, and -1 if the process lacks what
	// the attempt needs.
	Errno int `json:"errno"`
}

// Numbers of errors, which are the same on all Unix systems.
const (
	errnoPermission = 1  // EPERM
	errnoAccess     = 13 // EACCES
	errnoDevice     = 18 // EXDEV
	errnoMissing    = -1
)

// judge returns the names of the attempts, all of which were refused. Otherwise the error is a
// [*sandbox.Error] that names those that were not.
func judge(attempts []Attempt, outcomes []Outcome, layers []string) ([]string, error) {
	var names, worked []string
	strict := slices.Contains(layers, sandbox.LayerSandboxExec)
	for _, a := range attempts {
		names = append(names, a.Name)
		at := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Name == a.Name })
		switch {
		case at < 0:
			worked = append(worked, a.Name+" (not tried)")
		case a.worked(outcomes[at].Errno):
			worked = append(worked, a.describe())
		case strict && !a.refused(outcomes[at].Errno):
			worked = append(worked, fmt.Sprintf("%s (failed with error %d only)", a.describe(), outcomes[at].Errno))
		}
	}
	if len(worked) > 0 {
		return nil, &sandbox.Error{Op: "check sandbox",
			Err: errors.New("code could do what it must not: " + strings.Join(worked, ", "))}
	}
	return names, nil
}

// measured refuses a process whose memory only the host limits if the host cannot read how much
// it uses.
func measured(layers []string, memory int64) error {
	if memory > 0 || !slices.Contains(layers, sandbox.LayerSandboxExec) {
		return nil
	}
	return &sandbox.Error{Op: "check sandbox", Err: errors.New("the memory that the process uses cannot be read")}
}

// describe returns what an attempt does, with its target.
func (a *Attempt) describe() string { return strings.TrimSpace(a.Name + " " + a.Path) }

// worked reports whether an attempt had an effect. A file that a process created may be in a
// private folder of it.
func (a *Attempt) worked(errno int) bool {
	if a.Kind == kindCreate {
		_, err := os.Lstat(a.Path)
		return err == nil
	}
	return errno == 0
}

// refused reports whether an error is one of a sandbox that has no private folders, networks and
// process numbers: there is no other reason why the attempt fails.
func (a *Attempt) refused(errno int) bool {
	switch errno {
	case errnoPermission, errnoAccess:
		return true
	case errnoMissing:
		return a.Kind == kindEnvironment
	case errnoDevice:
		return a.Kind == kindLink
	}
	return false
}
