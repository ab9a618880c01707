package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sandboxExec is the program of macOS that starts others with a profile.
const sandboxExec = "/usr/bin/sandbox-exec"

// Wrap returns the program that runs p in a sandbox of macOS: sandbox-exec with a profile. cfg has
// Confine, because there is no other kind of sandbox there. It was written without a Mac: who
// starts the result checks in the program what it can do.
func Wrap(cfg *Config, p Program) (Program, error) { return cfg.wrap(p, sandboxExec) }

// wrap is Wrap with the file of sandbox-exec.
func (c *Config) wrap(p Program, tool string) (Program, error) {
	if c.Confine == nil || c.Network {
		return Program{}, &Error{Op: "make sandbox", Err: ErrUnsupported, Refused: true}
	}
	if _, err := os.Stat(tool); err != nil {
		return Program{}, &Error{Op: "find sandbox program", Err: err, Refused: true}
	}
	made, err := c.profile(p.Path)
	if err != nil {
		return Program{}, &Error{Op: "make profile", Err: err}
	}
	text, err := made.text()
	if err != nil {
		return Program{}, &Error{Op: "make profile", Err: err}
	}
	out := p
	out.Path = tool
	out.Args = []string{filepath.Base(tool), "-p", text, p.Path}
	if len(p.Args) > 1 {
		out.Args = append(out.Args, p.Args[1:]...)
	}
	return out, nil
}

// profile returns what a program may do, with the paths that are behind symbolic links.
func (c *Config) profile(program string) (*profile, error) {
	var p profile
	for _, one := range []struct {
		to    *[]string
		paths []string
		must  bool // all are there
	}{
		{&p.execute, []string{program}, true},
		{&p.execute, c.Confine.Executed, false},
		{&p.read, slices.Concat(c.Confine.Programs, c.Readable), false},
		{&p.hide, c.Hidden, false},
		{&p.write, c.Writable, true},
	} {
		for _, path := range one.paths {
			real, met, err := follow(path)
			if errors.Is(err, fs.ErrNotExist) && !one.must {
				continue
			}
			if err != nil {
				return nil, err
			}
			*one.to, p.see = append(*one.to, real), append(p.see, met...)
		}
	}
	for _, path := range slices.Concat(p.execute, p.write) { // what must not be all of the file system
		if path == "/" {
			return nil, errors.New("the root of the file system is to be executed or written")
		}
	}
	p.show = slices.DeleteFunc(slices.Clone(p.read), func(path string) bool {
		return !slices.ContainsFunc(p.hide, func(hidden string) bool { return strings.HasPrefix(path, hidden+"/") })
	})
	slices.Sort(p.see)
	p.see = slices.Compact(p.see)
	return &p, nil
}

// follow returns the path of a file without symbolic links, and the links and folders that are met
// on the way to it.
func follow(path string) (real string, met []string, err error) {
	const mostLinks = 40
	if !filepath.IsAbs(path) {
		return "", nil, fmt.Errorf("the path %q is not absolute", path)
	}
	real, rest, links := "/", strings.Split(filepath.Clean(path), "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		met = append(met, next)
		if info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		if links++; links > mostLinks {
			return "", nil, fmt.Errorf("the path %q has too many symbolic links", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, met, nil
}
