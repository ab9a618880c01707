package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/loop/heldout"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/process/sandbox"
)

// confinement is what the agent, and commands that run its code in the workspace, cannot reach.
type confinement struct {
	sandbox *sandbox.Config // nil if nothing is hidden
	// exposed is why files that no agent may see are not hidden; empty if they are, or if there are none.
	exposed string
}

// confine finds out what the agent and its code cannot reach.
func (r *run) confine(ctx context.Context) confinement {
	if !r.holdsOut() || r.fault != nil {
		return confinement{}
	}
	book, err := r.book()
	if err != nil {
		return confinement{exposed: err.Error()}
	}
	places, left := r.heldOutPlaces(book)
	cfg := &sandbox.Config{Open: true, Network: true, Hidden: places}
	if err := r.tryConfinement(ctx, cfg); err != nil {
		return confinement{exposed: err.Error()}
	}
	c := confinement{sandbox: cfg}
	if len(left) > 0 {
		c.exposed = "the completion command or an agent uses " + strings.Join(left, ", ")
	}
	return c
}

// heldOutPlaces returns the files and folders of a held-out check to hide, and the folders left out
// because the completion command or an agent uses them too.
func (r *run) heldOutPlaces(book *heldout.Book) (all, left []string) {
	all = []string{r.e.cfg.HeldOut}
	if dir, err := heldOutTemp(); err == nil {
		all = append(all, dir)
	}
	for _, name := range book.Check.Places(r.files.Root()) {
		if uses(r.cfg.Until+" "+strings.Join(r.cfg.Agents(), " "), name) {
			left = append(left, name)
			continue
		}
		all = append(all, name)
	}
	for _, name := range book.Check.Outside { // also if its folder is not hidden
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			all = append(all, name)
		}
	}
	return append(all, argumentsOf(book)...), left
}

// uses reports whether a command names a path, or one below it.
func uses(command, path string) bool {
	words := strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t\n'\"=:;&|()<>", c) })
	return slices.ContainsFunc(words, func(word string) bool {
		rel, err := filepath.Rel(path, word)
		return filepath.IsAbs(word) && err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	})
}

// argumentsOf returns the files of /proc with the arguments of the processes above this one that have
// the check on their command line, such as a shell.
func argumentsOf(book *heldout.Book) []string {
	texts := append(slices.Clone(book.Check.Outside), book.Check.Command)
	var files []string
	for _, a := range caller.Self().Ancestors() {
		name := fmt.Sprintf("/proc/%d/cmdline", a.PID)
		line, err := os.ReadFile(name)
		line = bytes.ReplaceAll(line, []byte{0}, []byte{' '})
		if err == nil && slices.ContainsFunc(texts, func(t string) bool {
			return t != "" && bytes.Contains(line, []byte(filepath.Base(t)))
		}) {
			files = append(files, name)
		}
	}
	return files
}

// tryConfinement returns an error if the system has no sandbox in which the workspace can be used.
func (r *run) tryConfinement(ctx context.Context, cfg *sandbox.Config) error {
	if os.Geteuid() == 0 && caller.Owner(r.files.Root()) != 0 {
		return errors.New("the workspace belongs to another user, whose files root cannot write in a sandbox")
	}
	err := guard.Run(ctx, guard.Config{Path: "sh", Args: []string{"-c", "true"}, Dir: r.files.Root(),
		Hold: r.e.cfg.Hold, Sandbox: cfg})
	if refused, ok := errors.AsType[*sandbox.Error](err); ok && refused.Refused {
		return fmt.Errorf("the system refuses a sandbox: %w", refused)
	}
	return err
}
