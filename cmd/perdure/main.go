// Command perdure runs work of AI agents that survives crashes.
package main

import (
	"context"
	"os"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/rlm"
)

func main() {
	guard.Enter()
	rlm.EnterEngine()
	cwd, _ := os.Getwd() // without one, commands say what they need it for
	os.Exit(cli.Main(context.Background(), env.System(cwd)))
}
