package cli

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/agentconfig"
)

// versionPatience is how long the program of an agent may take to print its version.
const versionPatience = 20 * time.Second

// checkAgents reports for each coding agent its program, its version and its hook. Only a hook
// that is installed and skipped by its agent is a failure.
func (a *app) checkAgents(ctx context.Context) []diagnosis {
	all := agentconfig.Agents()
	checks := make([]diagnosis, len(all))
	var asks sync.WaitGroup
	for i := range all {
		asks.Go(func() { checks[i] = a.checkAgent(ctx, &all[i]) })
	}
	asks.Wait()
	return checks
}

func (a *app) checkAgent(ctx context.Context, of *agentconfig.Agent) diagnosis {
	c := diagnosis{Name: of.Name, OK: true}
	place := agentconfig.Place{Getenv: a.Getenv, Project: agentconfig.Root(a.Cwd)}
	state, file := of.Status(place)
	hook := map[agentconfig.State]string{
		agentconfig.None:      fmt.Sprintf("hook none; `perdure install %s` installs it", of.Name),
		agentconfig.InProject: "hook active in this project, " + file,
		agentconfig.InUser:    "hook active for the user, " + file,
		agentconfig.NoTrust: fmt.Sprintf("hook not trusted, so the agent skips it, %s; `perdure install %s` records trust",
			file, of.Name),
	}[state]
	found, err := exec.LookPath(of.Program)
	if err != nil {
		c.Detail = "not found; " + hook
		return c
	}
	c.OK = state != agentconfig.NoTrust
	c.Detail = fmt.Sprintf("%s, version %s; %s", found, versionOf(ctx, found), hook)
	return c
}

// versionOf returns the version that a program prints.
func versionOf(ctx context.Context, program string) string {
	ctx, stop := context.WithTimeout(ctx, versionPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second // programs start others that keep the pipe open
	out, err := cmd.Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || line == "" {
		return "not known"
	}
	return clip.Bytes(line, 100)
}
