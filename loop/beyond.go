package loop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
)

// What snapshots do not have cannot be brought back: files that are too large,
// sockets, unreadable files, and the repository itself. They are reported.

const (
	// maxLeftOut is how many files left out of snapshots a loop reports, and
	// fewNamed how many files a warning names.
	maxLeftOut = 100
	fewNamed   = 5
)

// lookedAt warns of what a snapshot does not have: of each file that it leaves out
// once, and of those that changed while they were read.
func (r *run) lookedAt(stats *workspace.Stats) {
	var fresh []string
	for _, l := range stats.LeftOut {
		if len(r.state.LeftOut) < maxLeftOut && !slices.Contains(r.state.LeftOut, l.Path) {
			r.state.LeftOut = append(r.state.LeftOut, l.Path)
			why := l.Why.String()
			if l.Why == workspace.TooLarge {
				why = "larger than " + human.Size(workspace.DefaultMaxFileSize)
			}
			fresh = append(fresh, fmt.Sprintf("%s (%s)", l.Path, why))
		}
	}
	if len(fresh) > 0 {
		r.warn("snapshots leave out %s: changes to it are not detected and cannot be undone", few(fresh))
	}
	if len(stats.Changing) > 0 {
		r.warn("%s changed while the snapshot was taken: the snapshot may have a mixture", few(stats.Changing))
	}
}

// few names some files.
func few(names []string) string {
	text := strings.Join(names[:min(len(names), fewNamed)], ", ")
	if more := len(names) - fewNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// warn leaves an event, and a line in the record of the iteration.
func (r *run) warn(format string, args ...any) {
	w := hook.Warning{Kind: hook.WarnSnapshot, Iteration: r.state.Run.Number, Message: fmt.Sprintf(format, args...)}
	r.warnings.add(w)
	r.state.Run.Warnings = append(r.state.Run.Warnings, w.Message)
}

// hasRepository reports whether the workspace is the top of a repository now.
func (r *run) hasRepository() bool {
	_, err := os.Lstat(filepath.Join(r.files.Root(), ".git"))
	return err == nil
}

// repositoryGone is a regression when the repository went since the last look: no
// snapshot has it, so a person is asked at once, and only once.
func (r *run) repositoryGone() []regression.Regression {
	if r.cfg.Plain || !r.state.Repository || r.hasRepository() {
		return nil
	}
	r.state.Repository = false
	return []regression.Regression{{Type: string(hook.ProtectedChange), Severity: string(hook.Critical),
		Files: []string{".git"},
		Text:  ".git is gone, and with it the history of the repository; snapshots do not have it: fetch it from a clone"}}
}

// settings identifies the version of the settings file next to the store; "none" without one.
func (r *run) settings() string {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(r.e.cfg.Dir), "config.yaml"))
	if err != nil {
		return "none"
	}
	return requestHash(string(text))
}

// settingsChanged is a regression when the agent did not leave the settings as it found
// them: no snapshot has them, and the next loop reads them. What a person changes
// after its turn, while nothing runs, does not concern the agent.
func (r *run) settingsChanged() []regression.Regression {
	if t := &r.state.Run; r.cfg.Plain || t.Settings == "" || t.Left == "" || t.Left == t.Settings {
		return nil
	}
	return []regression.Regression{{Type: string(hook.ProtectedChange), Severity: string(hook.Critical),
		Files: []string{".perdure/config.yaml"},
		Text: "the settings of perdure changed while the agent worked, and the next loop would read them: look at " +
			".perdure/config.yaml, which snapshots do not have"}}
}
