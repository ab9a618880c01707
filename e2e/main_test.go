package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/process/guard"
)

// TestMain makes this test binary the program itself when it is called
// perdure: scripts and crash tests start it as a process of its own.
func TestMain(m *testing.M) {
	guard.Enter()
	if role := os.Getenv(roleEnv); role != "" {
		if err := playRole(role); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	testscript.Main(m, map[string]func(){"perdure": func() {
		cwd, err := os.Getwd()
		if err != nil {
			cwd = ""
		}
		os.Exit(cli.Main(context.Background(), cli.System(cwd)))
	}, "claude": func() {
		if err := playClaude(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
	}})
}
