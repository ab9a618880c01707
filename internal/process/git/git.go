// Package git runs the git program to query a repository that other people may have
// written. Settings and attributes of a repository can name programs: file system monitors,
// hooks, filters, external diffs, text conversions, transports. A command of this package
// starts none of them and connects to nothing.
package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Query is what all commands on a repository have in common.
type Query struct {
	// Program is the git program; empty for "git".
	Program string
	// Dir is a folder of the repository.
	Dir string
	// Environ is the environment of the process.
	Environ []string
	// Own ignores the variables that select another repository or index than the one that
	// contains Dir. Git sets them for hooks.
	Own bool
	// NoFilters are the settings that turn off filters: the result of [Filters]. Commands
	// that compare files of the working tree need it.
	NoFilters []string
}

// selecting are the variables that select a repository.
func selecting() []string {
	return []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"}
}

// changing are the variables that start programs, write files or change the output.
func changing() []string {
	return []string{"GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_PAGER", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS",
		"GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_ALLOW_PROTOCOL", "GIT_ATTR_SOURCE"}
}

// Command returns a command that starts no program.
func Command(ctx context.Context, q Query, args ...string) *exec.Cmd {
	program := q.Program
	if program == "" {
		program = "git"
	}
	all := []string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull,
		"-c", "diff.external=", "-c", "core.alternateRefsCommand=", "-c", "diff.autoRefreshIndex=true"}
	all = append(append(all, q.NoFilters...), args...)
	cmd := exec.CommandContext(ctx, program, all...)
	cmd.Dir = q.Dir
	cmd.Env = q.environment()
	cmd.WaitDelay = time.Second
	return cmd
}

// environment returns the variables of a command. Without an allowed protocol git fetches
// no missing object; versions before 2.44 have no other setting for that.
func (q Query) environment() []string {
	env := slices.DeleteFunc(slices.Clone(q.Environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		name = strings.ToUpper(name)
		return q.Own && slices.Contains(selecting(), name) || slices.Contains(changing(), name) ||
			strings.HasPrefix(name, "GIT_TRACE") || strings.HasPrefix(name, "GIT_REDIRECT_")
	})
	return append(env, "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C")
}

// maxFilters is the limit of the filters of a repository: each takes four arguments of a
// command.
const maxFilters = 100

// Filters returns the settings that turn off the filters that the settings of the repository,
// of the user and of the system define. It reads the settings and runs none of them.
func Filters(ctx context.Context, q Query) ([]string, error) {
	cmd := Command(ctx, q, "config", "--includes", "--list", "--name-only", "-z")
	out, err := cmd.Output()
	if stopped := ctx.Err(); stopped != nil {
		return nil, stopped
	}
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("list settings of git: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("list settings of git: %w", err)
	}
	return filtersOff(string(out))
}

// filtersOff returns the settings for a list of names, each of which ends with a NUL.
func filtersOff(names string) ([]string, error) {
	var filters, args []string
	for name := range strings.SplitSeq(names, "\x00") {
		const section = "filter."
		last := strings.LastIndexByte(name, '.')
		if last < len(section) || !strings.EqualFold(name[:len(section)], section) {
			continue
		}
		filter := name[len(section):last]
		switch {
		case slices.Contains(filters, filter):
			continue
		case strings.ContainsAny(filter, "=\n"): // git -c reads another name
			return nil, fmt.Errorf("the settings of git define the filter %q, which cannot be turned off", filter)
		case len(filters) == maxFilters:
			return nil, fmt.Errorf("the settings of git define more than %d filters", maxFilters)
		}
		filters = append(filters, filter)
		for _, setting := range []string{"clean=", "smudge=", "process=", "required=false"} {
			args = append(args, "-c", section+filter+"."+setting)
		}
	}
	return args, nil
}
