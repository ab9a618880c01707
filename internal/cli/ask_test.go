package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/rlm"
)

// A further question reads no files: flags about how they are read are refused.
func TestFurtherQuestionsReadNoFiles(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--encoding shift-jis", "--no-ignore", "--max-file-size 1MB", "--pre *.pdf=cat"} {
		p := newProject(t)
		out, notes := p.run(env.StatusUsage, append([]string{"ask", "tree-1a2b3c4d", "why?"}, strings.Fields(args)...)...)
		if out != "" || !strings.Contains(notes, "is not read again") ||
			!strings.Contains(notes, "perdure run") {
			t.Errorf("%s: output %q, errors %q", args, out, notes)
		}
	}
}

// Each flag of a further question changes a member of the configuration, or concerns this command only.
func TestFlagsOfAFurtherQuestion(t *testing.T) {
	t.Parallel()
	here := []string{"concurrency", "detach", "dry-run", "json", "help", "help-all", "name", "trust", "context", "pre",
		"out", "repl-python", "repl-unsandboxed", "confirm-above", "encoding", "max-file-size", "no-ignore", "yes"}
	config := reflect.TypeFor[rlm.Config]()
	var names []string
	for i := range config.NumField() {
		name, _, _ := strings.Cut(config.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	a := newApp(env.Process{})
	a.newAskCommand().Flags().VisitAll(func(f *pflag.Flag) {
		for _, name := range configMembers(f.Name) {
			if !slices.Contains(names, name) && !slices.Contains(here, f.Name) {
				t.Errorf("--%s changes %q, which the configuration does not have", f.Name, name)
			}
		}
	})
}
