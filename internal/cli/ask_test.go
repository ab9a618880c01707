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
