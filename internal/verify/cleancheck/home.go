package cleancheck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/process/git"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/verify/machine"
)

// A run in a copy has a home folder, a folder for temporary files and build caches of its
// own, so that neither settings and caches that the agent changed nor files of an earlier
// run have an effect.

// ownFolders are the variables whose folders every copy has itself, or that select settings.
func ownFolders() []string {
	return []string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD",
		"PERDURE_DIR", "PERDURE_SOCKET", "GIT_CONFIG_GLOBAL",
		"GOPATH", "GOBIN", "GOENV", "GOCACHE", "GOTMPDIR", "GOMODCACHE", "CCACHE_DIR",
		"NPM_CONFIG_CACHE", "NPM_CONFIG_PREFIX", "npm_config_cache", "npm_config_prefix", "YARN_CACHE_FOLDER", "DENO_DIR",
		"PIP_CACHE_DIR", "PIPENV_CACHE_DIR", "UV_CACHE_DIR", "POETRY_CACHE_DIR", "PYTHONUSERBASE",
		"CARGO_HOME", "CARGO_TARGET_DIR", "GRADLE_USER_HOME", "ANDROID_USER_HOME", "COURSIER_CACHE",
		"DOTNET_CLI_HOME", "NUGET_PACKAGES", "COMPOSER_HOME", "COMPOSER_CACHE_DIR", "MIX_HOME", "HEX_HOME",
		"ZIG_GLOBAL_CACHE_DIR", "MISE_CACHE_DIR"}
}

// own reports whether a variable is one of ownFolders and not passed on as it is.
func (s *sealing) own(name string) bool {
	return (slices.Contains(ownFolders(), name) || strings.HasPrefix(name, "XDG_")) && !environ.Matches(s.Pass, name)
}

// prepareHome creates the home folder of a copy and sets its environment and its sandbox.
func (s *sealing) prepareHome(ctx context.Context, p *Place) error {
	at := func(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }
	home, temp := at("home"), at("tmp")
	for _, dir := range []string{home, temp, at("private")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	var readable, writable []string
	env := elsewhere(slices.DeleteFunc(slices.Clone(s.env), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		inside := string(replacePath([]byte(value), s.Files.Root(), p.Root)) != value
		if environ.Matches(s.Pass, name) && slices.Contains(ownFolders(), name) && filepath.IsAbs(value) && !inside {
			writable = append(writable, value)
		}
		return s.own(name)
	}), s.Files.Root(), p.Root)
	env = append(env, "HOME="+home, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	env = machine.Set(env, "MAVEN_OPTS", strings.TrimSpace(machine.Get(env, "MAVEN_OPTS")+" -Duser.home="+home))
	if !s.withCaches { // compiled files next to installed packages may be poisoned
		env = append(env, "PYTHONPYCACHEPREFIX="+filepath.Join(home, ".cache", "python"))
	}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+home, "APPDATA="+filepath.Join(home, "AppData", "Roaming"),
			"LOCALAPPDATA="+filepath.Join(home, "AppData", "Local"))
	}
	for _, v := range machine.Installed(s.env) {
		_, dir, _ := strings.Cut(v, "=")
		env, readable = append(env, v), append(readable, dir)
	}
	for i := range s.caches {
		c := &s.caches[i]
		readable = append(readable, c.Dir)
		for _, v := range c.Env {
			if name, _, _ := strings.Cut(v, "="); !environ.Matches(s.Pass, name) {
				env = append(env, v)
			}
		}
		if err := linkCache(home, c); err != nil {
			return err
		}
	}
	for _, dir := range writable { // the tool would create it
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	p.Env, s.replaced = env, s.replacedVariables(env)
	readable = append(readable, filepath.SplitList(machine.Get(env, "PATH"))...)
	if s.confined {
		p.Sandbox = &sandbox.Config{Writable: append(writable, filepath.Dir(p.Root), p.Scratch, home, temp),
			Readable: readable, Hidden: append(slices.Clip(s.Hidden), s.Files.Root()), Temp: at("private")}
	}
	return s.settings(ctx, home)
}

// linkCache links a shared cache into a home folder. A system that refuses links does
// without.
func linkCache(home string, c *machine.Cache) error {
	if c.Link == "" {
		return nil
	}
	link := filepath.Join(home, filepath.FromSlash(c.Link))
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(c.Dir, link); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return nil
}

// settings writes what tests usually need of the user's settings: the name for commits, and
// the versions that asdf selects.
func (s *sealing) settings(ctx context.Context, home string) error {
	cmd := git.Command(ctx, git.Query{Dir: home, Environ: s.env, Own: true},
		"config", "--global", "--null", "--get-regexp", `^user\.(name|email)$`)
	if out, err := cmd.Output(); err == nil { // there is git, and a name
		for entry := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			key, value, _ := strings.Cut(entry, "\n")
			set := git.Command(ctx, git.Query{Dir: home, Environ: s.env, Own: true},
				"config", "--file", filepath.Join(home, ".gitconfig"), key, value)
			if out, err := set.CombinedOutput(); err != nil {
				return fmt.Errorf("write settings of git: %w: %s", err, out)
			}
		}
	}
	name := filepath.Join(machine.Get(s.env, "HOME"), ".tool-versions")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // opening a pipe can take forever
		return nil //nolint:nilerr // there is none
	}
	versions, err := os.ReadFile(name) //nolint:gosec // a file of the user
	if err != nil {
		return nil //nolint:nilerr // it cannot be read
	}
	return os.WriteFile(filepath.Join(home, ".tool-versions"), versions, 0o600)
}
