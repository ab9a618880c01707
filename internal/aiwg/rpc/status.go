package rpc

import (
	"context"
	"os"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
)

// shownTasks is the number of tasks of a state in daemon.status.
const shownTasks = 20

func (s *Server) ping(context.Context, *conn, *params) (any, error) {
	return map[string]any{"pong": true, "timestamp": time.Now().UTC()}, nil
}

// statusDoc is the result of daemon.status.
type statusDoc struct {
	PID        int        `json:"pid"`
	Uptime     int64      `json:"uptime_seconds"`
	StartedAt  time.Time  `json:"started_at"`
	Health     string     `json:"health"`
	Version    string     `json:"version,omitempty"`
	Subsystems subsystems `json:"subsystems"`
	// Tasks counts imported tasks, too, which the supervisor does not have.
	Tasks *counts `json:"task_stats"`
}

type subsystems struct {
	IPC struct {
		Clients int `json:"clients"`
	} `json:"ipc"`
	Supervisor supervisor `json:"supervisor"`
}

type supervisor struct {
	Running        int `json:"running"`
	Queued         int `json:"queued"`
	MaxConcurrency int `json:"maxConcurrency"`
	Tasks          struct {
		Running []shortTask `json:"running"`
		Queued  []shortTask `json:"queued"`
	} `json:"tasks"`
}

// shortTask is a task in a status.
type shortTask struct {
	ID        perdure.TaskID `json:"id"`
	Prompt    string         `json:"prompt"`
	Agent     *string        `json:"agent"` // nil for none
	Priority  int            `json:"priority"`
	StartedAt *time.Time     `json:"startedAt,omitempty"`
	// PID is the process of the worker of a running task, 0 if it is not known.
	PID int64 `json:"pid,omitempty"`
}

// shownPrompt is the number of characters of a prompt in a status.
const shownPrompt = 80

func (s *Server) status(ctx context.Context, _ *conn, _ *params) (any, error) {
	d := &statusDoc{PID: os.Getpid(), Uptime: int64(time.Since(s.started).Seconds()), StartedAt: s.started.UTC(),
		Health: "healthy", Version: s.cfg.Version}
	if s.stopping() {
		d.Health = "stopping"
	}
	v := &d.Subsystems.Supervisor
	v.MaxConcurrency, v.Tasks.Running, v.Tasks.Queued = s.cfg.Concurrency, []shortTask{}, []shortTask{}
	d.Subsystems.IPC.Clients = s.clients()
	var err error
	if d.Tasks, err = s.counts(ctx); err != nil {
		return nil, err
	}
	err = s.eachTree(ctx, perdure.TreeFilter{Active: true, Limit: MaxList}, func(t *perdure.Tree) (bool, error) {
		state, err := s.stateOf(ctx, t)
		list, n := &v.Tasks.Running, &v.Running
		switch {
		case err != nil || state != perdure.Running && state != perdure.Queued:
			return true, err
		case state == perdure.Queued:
			list, n = &v.Tasks.Queued, &v.Queued
		}
		*n++
		if len(*list) < shownTasks {
			var short shortTask
			if short, err = s.short(ctx, t); err == nil {
				*list = append(*list, short)
			}
		}
		return true, ignoreNotFound(err)
	})
	return d, err
}

func (s *Server) short(ctx context.Context, tree *perdure.Tree) (shortTask, error) {
	t, err := s.store.Task(ctx, tree.Root)
	return s.shortOf(&t), err
}

func (s *Server) shortOf(t *perdure.Task) shortTask {
	short := shortTask{ID: t.ID, Priority: t.Priority, Prompt: shortPrompt(t)}
	if t.Agent != "" {
		short.Agent = &t.Agent
	}
	if t.State == perdure.Running {
		short.PID = s.items.pid(t.ID)
	}
	if !t.StartedAt.IsZero() {
		short.StartedAt = &t.StartedAt
	}
	return short
}

// shortPrompt returns the first characters of a prompt.
func shortPrompt(t *perdure.Task) string {
	prompt := []rune(clip.Prefix(t.Prompt, utf8.UTFMax*shownPrompt))
	return string(prompt[:min(len(prompt), shownPrompt)])
}
