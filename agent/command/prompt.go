package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/model"
)

// maxArgLinux is the longest argument Linux takes, its final NUL among it. The
// limit for all arguments and variables together is found out by trying.
const maxArgLinux = 128 << 10

const hintTooLong = "give the prompt as a file with " + PlaceholderFile + ", or on standard input by leaving " +
	PlaceholderPrompt + " out"

const noteNUL = "the prompt contained NUL bytes or was not valid UTF-8; these were replaced by U+FFFD"

// promptFiles are the names of files with prompts, policyFiles those of files with the
// policy of an agent.
const (
	promptFiles = "perdure-prompt-*.md"
	policyFiles = "perdure-policy-*.toml"
)

// input is what a program is started with.
type input struct {
	args   []string
	env    []string // of the preset, which all others override
	prompt string
	pipe   bool // the prompt goes to standard input
	files  []*os.File
	notes  []string
	// hookEnv are variables for the agent's hook, which override all others.
	hookEnv []string
}

func (a *Agent) input(turn *agent.Turn, from session) (*input, error) {
	prompt, changed := model.Clean(turn.Prompt)
	in := &input{prompt: prompt}
	if changed {
		in.notes = append(in.notes, noteNUL)
	}
	if a.vendor.args != nil {
		if err := a.preset(in, turn, from); err != nil {
			in.remove()
			return nil, err
		}
		return in, nil
	}
	in.args = slices.Clone(a.cfg.Args)
	in.pipe = !a.cfg.contains(PlaceholderPrompt) && !a.cfg.contains(PlaceholderFile)
	if err := in.fill(a.cfg); err != nil {
		in.remove()
		return nil, &agent.Error{Kind: agent.KindInvalid, Msg: "give the prompt to " + a.name(), Err: err, Hint: hintTooLong}
	}
	return in, nil
}

// preset adds the arguments and variables of a preset.
func (a *Agent) preset(in *input, turn *agent.Turn, from session) error {
	cfg := a.cfg
	if a.vendor.env != nil {
		in.env = a.vendor.env(cfg)
	}
	hook := turn.Hook
	if !a.Hooked() {
		hook = nil
	}
	if a.vendor.hooks != nil && len(hook)+len(turn.Endpoints) > 0 {
		set, err := a.vendor.hooks(&hooking{words: hook, args: cfg.Args, env: a.environment(turn, in.env),
			to: turn.Endpoints, write: in.write(cfg)})
		if err != nil {
			return &agent.Error{Kind: agent.KindInvalid, Msg: "give a hook to " + a.name(), Err: err}
		}
		in.args, cfg.Args, in.hookEnv = set.options, set.rest, set.env
	}
	if rules := a.granted(turn); len(rules) > 0 && a.vendor.grant != nil {
		g := a.vendor.grant(rules)
		in.args, in.env = append(in.args, g.args...), append(in.env, g.env...)
		if g.policy != "" {
			path, err := in.write(cfg)(policyFiles, g.policy)
			if err != nil {
				return &agent.Error{Kind: agent.KindFailed, Msg: "write the policy of " + a.name(), Err: err}
			}
			in.args = append(in.args, "--policy", path)
		}
	}
	if a.vendor.endpoint != nil && turn.Endpoints == nil {
		in.args = append(in.args, a.vendor.endpoint(turn.Env, cfg.Args)...)
	}
	in.args, in.pipe = append(in.args, a.vendor.args(cfg, from.id)...), true
	return nil
}

// fill puts the prompt where the arguments have a place for it.
func (in *input) fill(cfg Config) error {
	path := ""
	if cfg.contains(PlaceholderFile) {
		var err error
		if path, err = in.write(cfg)(promptFiles, in.prompt); err != nil {
			return err
		}
	}
	put := strings.NewReplacer(PlaceholderPrompt, in.prompt, PlaceholderFile, path)
	for i, arg := range in.args {
		arg = put.Replace(arg)
		if runtime.GOOS == "linux" && len(arg) >= maxArgLinux {
			return fmt.Errorf("the argument has %d bytes, the system takes %d", len(arg), maxArgLinux-1)
		}
		in.args[i] = arg
	}
	return nil
}

func (in *input) stdin() io.Reader {
	if !in.pipe {
		return nil
	}
	return strings.NewReader(in.prompt)
}

// remove removes the files of the turn.
func (in *input) remove() {
	for _, f := range in.files {
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
}

// write makes files of the turn.
func (in *input) write(cfg Config) func(pattern, text string) (string, error) {
	return func(pattern, text string) (string, error) {
		f, err := writeFile(cfg.TempDir, pattern, text)
		if err != nil {
			return "", err
		}
		in.files = append(in.files, f)
		return f.Name(), nil
	}
}

// writeFile makes a file that only this user can read. It stays locked while it is open:
// unlocked files were left by a process that was killed, and are removed on the way.
func writeFile(dir, pattern, text string) (*os.File, error) {
	dir = cmp.Or(dir, os.TempDir())
	removeLeft(dir, pattern)
	for {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		err = filelock.TryLock(f)
		if err == nil {
			_, err = f.WriteString(text)
		}
		// Before it was locked another process may have removed it as a leftover.
		mine := stillThere(f)
		if err == nil && mine {
			return f, nil
		}
		_ = os.Remove(f.Name())
		_ = f.Close()
		if mine {
			return nil, err
		}
	}
}

func stillThere(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return true // its own error will be reported
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(opened, named)
}

// removeLeft removes unlocked files. It does not matter when it
// cannot: the next one will.
func removeLeft(dir, pattern string) {
	names, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is a good one
	for _, name := range names {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if filelock.TryLock(f) == nil {
			_ = os.Remove(name)
		}
		_ = f.Close()
	}
}
