package heldout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/clip"
)

// Check is a held-out check.
type Check struct {
	// Command is run by the shell in a copy of the workspace. If Folder is set instead, the files of
	// this folder are laid over the copy, and the completion command is run.
	Command string `json:"command,omitempty"`
	Folder  string `json:"folder,omitempty"`
	// Outside are the existing files and folders outside of the workspace that the check names.
	Outside []string `json:"outside,omitempty"`
}

// IsExposed reports whether the check names nothing outside of the workspace, so that an agent probably
// sees its tests.
func (c *Check) IsExposed() bool { return len(c.Outside) == 0 }

// Places returns the files and folders outside of the workspace that belong to the check: what it names,
// and for a file the folder with it, which usually has more of the check.
func (c *Check) Places(workspace string) []string {
	var all []string
	for _, name := range c.Outside {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			if dir := filepath.Dir(name); !isShared(dir) && !contains(dir, workspace) {
				name = dir
			}
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// isShared reports whether a folder usually has files of many programs.
func isShared(dir string) bool {
	home, err := os.UserHomeDir()
	return ofSystem(dir) || err == nil && contains(dir, home) ||
		slices.Contains([]string{"/opt", "/srv", "/mnt", "/var", "/root", "/home", real(os.TempDir())}, real(dir))
}

// Parse reads a folder or a command for a workspace with a completion command. Its error is why the
// check cannot be run, or why the agent could change it.
func Parse(text, workspace, until string) (*Check, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("the held-out check is empty")
	}
	if text == strings.TrimSpace(until) {
		return nil, errors.New("the held-out check is the completion command, which the agent sees")
	}
	if info, err := os.Stat(within(text, workspace)); err == nil && info.IsDir() {
		return parseFolder(within(text, workspace), workspace)
	}
	return parseCommand(text, workspace)
}

// within returns a path as it is seen from the workspace.
func within(name, workspace string) string {
	if home, err := os.UserHomeDir(); err == nil && (name == "~" || strings.HasPrefix(name, "~/")) {
		name = filepath.Join(home, strings.TrimPrefix(name, "~"))
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(workspace, name)
}

func parseFolder(dir, workspace string) (*Check, error) {
	dir = real(dir)
	switch entries, err := os.ReadDir(dir); {
	case err != nil:
		return nil, fmt.Errorf("the held-out folder cannot be read: %w", err)
	case contains(workspace, dir):
		return nil, fmt.Errorf("the held-out folder %s is inside of the workspace, where the agent can read and change it",
			dir)
	case contains(dir, workspace):
		return nil, fmt.Errorf("the held-out folder %s contains the workspace", dir)
	case len(entries) == 0:
		return nil, fmt.Errorf("the held-out folder %s is empty", dir)
	}
	return &Check{Folder: dir, Outside: []string{dir}}, nil
}

func parseCommand(text, workspace string) (*Check, error) {
	started, words, moves, err := project.Starts(text)
	if err != nil {
		return nil, fmt.Errorf("the held-out command cannot be parsed: %w", err)
	}
	c := &Check{Command: text}
	for _, w := range words {
		c.add(w, workspace)
	}
	for _, s := range started {
		relative := !filepath.IsAbs(s.Name) && (s.Script || strings.Contains(s.Name, "/"))
		_, err := os.Stat(within(s.Name, workspace))
		if relative && (moves || err != nil && len(c.Outside) > 0) { // the command may make it
			continue
		}
		if err := canStart(s, workspace); err != nil {
			return nil, err
		}
	}
	for _, name := range c.Outside {
		if err := readable(name); err != nil {
			return nil, fmt.Errorf("the held-out command names a file that cannot be read: %w", err)
		}
	}
	return c, c.absolute(words, workspace)
}

// add adds what a word of the command names outside of the workspace.
func (c *Check) add(word, workspace string) {
	if _, value, ok := strings.Cut(word, "="); ok {
		word = value
	}
	if !strings.Contains(word, "/") && !strings.HasPrefix(word, "~") {
		return
	}
	name := within(word, workspace)
	if _, err := os.Stat(name); err != nil && !errors.Is(err, fs.ErrPermission) || contains(workspace, name) ||
		contains(name, workspace) || ofSystem(name) || slices.Contains(c.Outside, name) ||
		slices.Contains(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(name)) { // a program, not of the check
		return
	}
	c.Outside = append(c.Outside, name)
}

// absolute replaces relative paths that lead out of the workspace: in a copy they lead elsewhere.
func (c *Check) absolute(words []string, workspace string) error {
	for _, w := range words {
		name := within(w, workspace)
		if !strings.HasPrefix(w, "../") || !slices.Contains(c.Outside, name) {
			continue
		}
		if strings.ContainsAny(name, " \t\n'\"\\$`&;|<>()*?[]{}#~!") {
			return fmt.Errorf("the held-out command names %s by a relative path: write its absolute path", name)
		}
		c.Command = strings.ReplaceAll(c.Command, w, name)
	}
	return nil
}

// canStart returns an error for a program or script that does not exist, or that the agent can write.
func canStart(s project.Started, workspace string) error {
	name := s.Name
	if !s.Script && !strings.Contains(name, "/") {
		if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
			return fmt.Errorf("the held-out command cannot be run: %s is not installed, or not in PATH", name)
		}
		return nil
	}
	name = within(name, workspace)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the held-out command cannot be run: there is no file %s", name)
	case err != nil:
		return fmt.Errorf("the held-out command cannot be run: %w", err)
	case contains(workspace, name):
		return fmt.Errorf("the held-out command runs %s, which is inside of the workspace, where the agent can read and "+
			"change it", name)
	case info.IsDir() && !s.Script:
		return fmt.Errorf("the held-out command cannot be run: %s is a folder", name)
	case !s.Script && info.Mode()&0o111 == 0:
		return fmt.Errorf("the held-out command cannot be run: %s is not executable", name)
	}
	return nil
}

func readable(name string) error {
	f, err := os.Open(name) //nolint:gosec // a file of the user
	if err != nil {
		return err
	}
	return f.Close()
}

// contains reports whether a path is a folder or in it, behind symbolic links too.
func contains(dir, name string) bool {
	return below(dir, name) || below(real(dir), real(name))
}

func below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func real(name string) string {
	if behind, err := filepath.EvalSymlinks(name); err == nil {
		return behind
	}
	return name
}

// ofSystem reports whether a path belongs to the system, and so to no check in particular.
func ofSystem(name string) bool {
	for _, dir := range []string{"/bin", "/sbin", "/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/nix/store",
		"/opt/homebrew", "/System", "/Library"} {
		if below(dir, name) {
			return true
		}
	}
	return slices.Contains([]string{"/", "/tmp", "/var/tmp", "/dev/shm"}, name) ||
		below("/dev", name) && !below("/dev/shm", name)
}

// Shown is the check as it is shown to the user.
func (c *Check) Shown() string {
	if c.Folder != "" {
		return "the files of " + c.Folder
	}
	return clip.OneLine(c.Command)
}
