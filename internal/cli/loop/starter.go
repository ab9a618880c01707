package loop

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	settings "github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/loop/record"
)

// Starter starts and continues loops for a command that follows them itself. Its flags are
// those of loop run.
type Starter struct {
	c   *commands
	cmd *cobra.Command
	f   runFlags
}

// NewStarter returns a Starter and adds its flags to cmd.
func NewStarter(e *env.Env, cmd *cobra.Command) *Starter {
	s := &Starter{c: &commands{e}, cmd: cmd}
	s.f.registerTask(cmd)
	env.GroupFlags(cmd, groups("until agent model fallback worktree task-type planned-iterations trust")...)
	return s
}

// Check returns an error for flags with values that are not valid.
func (s *Starter) Check() error { return checkFlags(s.cmd) }

// Request returns the request for a loop in the working folder, with the settings l.
func (s *Starter) Request(l *settings.Loaded, task string) (client.TreeRequest, error) {
	set, err := s.c.settingsIn(l, s.f.TaskType)
	if err != nil {
		return client.TreeRequest{}, err
	}
	s.f.Task = task
	raw, err := s.c.configure(s.cmd, &s.f, &set)
	return client.TreeRequest{Kind: perdure.KindLoop, Prompt: task, Config: raw}, err
}

// Resume continues a loop with stricter settings of l, and makes it the own one of b. It returns
// perdure.CodeConflict if another process executes it.
func (s *Starter) Resume(ctx context.Context, b *env.Backend, l *settings.Loaded, id perdure.TreeID) error {
	set, err := s.c.settingsIn(l, "")
	if err != nil {
		return err
	}
	literal(&set)
	fields, err := json.Marshal(set.Fields(settable(&set)...))
	if err != nil {
		return err
	}
	if _, err := b.ResumeLoop(ctx, id, record.ResumeRequest{Settings: fields}); err != nil {
		return err
	}
	if err := claim(ctx, b, id); err != nil {
		return err
	}
	b.Own(id)
	return nil
}

// TakeOver makes a loop that was resumed before the own one of b. It returns perdure.CodeConflict if
// another process executes it. A request to pause or to end the loop stays.
func (s *Starter) TakeOver(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	if _, err := b.Resume(ctx, id, client.ResumeRequest{Owner: b.Session()}); err != nil {
		return err
	}
	b.Own(id)
	return nil
}

// Line returns an event of a loop as one line, "" for one that is not shown.
func Line(e *env.Env, ev *perdure.Event) string { return (&commands{e}).line(ev) }

// Summary returns the state of a loop as one line.
func Summary(l *record.Loop) string { return summary(l) }
